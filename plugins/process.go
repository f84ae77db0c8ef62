package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// process is a process of a plugin and its descendants. It implements runner.Runner of go-plugin.
//
// All output is read immediately. The first line is the handshake. Only the end of the remaining output is
// stored. go-plugin receives only the validated handshake line.
type process struct {
	cmd     *exec.Cmd
	release func()
	speaks  []int  // supported versions of the contract
	dir     string // directory of its sockets
	tail    *tail

	firstLine chan string   // receives the first line, at most maxHandshake bytes, then closed
	handshake string        // the first line, once it is validated
	done      chan struct{} // closed when the whole process tree has exited and all output is read
	exitText  string        // describes the exit; set before done is closed

	mu          sync.Mutex
	startCalled bool  // whether Start was called
	started     bool  // whether the process was started
	cause       error // the reason why coven stopped the process
}

// errGivenUp is the cause if go-plugin kills the process.
var errGivenUp = errors.New("go-plugin stopped it")

// newProcess returns a process for an unstarted command.
func newProcess(cmd *exec.Cmd, release func(), speaks []int, kept *tail) *process {
	return &process{
		cmd: cmd, release: release, speaks: speaks, tail: kept,
		firstLine: make(chan string, 1), done: make(chan struct{}),
	}
}

// Start implements runner.Runner. It returns after the handshake line, because go-plugin does not need the
// process earlier.
func (p *process) Start(context.Context) error {
	if err := p.launch(); err != nil {
		p.release()
		close(p.done)
		return err
	}
	line, greeted := <-p.firstLine
	if !greeted {
		p.awaitExit(errors.New("closed standard output without a handshake line"))
		return p.exitError()
	}
	if err := checkHandshake(line, p.speaks, p.dir); err != nil {
		p.kill(err)
		<-p.done
		return fmt.Errorf("%w%s", err, p.tail.quote())
	}
	p.handshake = line
	return nil
}

// launch starts the process and the goroutines that read its output.
func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.startCalled = true
	if p.cause != nil {
		return p.cause
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	errs, errsEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make a pipe: %w", err), out.Close(), outEnd.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = outEnd, errsEnd
	err = errors.Join(p.cmd.Start(), outEnd.Close(), errsEnd.Close())
	if err != nil {
		return errors.Join(err, out.Close(), errs.Close())
	}
	p.started = true
	var readers sync.WaitGroup
	readers.Go(func() { p.readOutput(out) })
	readers.Go(func() { _, _ = io.Copy(p.tail, errs) })
	go p.wait(&readers, out, errs)
	return nil
}

// readOutput sends the first line to firstLine and writes the rest to the tail.
func (p *process) readOutput(out io.Reader) {
	first := make([]byte, 0, maxHandshake)
	for {
		n, err := out.Read(first[len(first):cap(first)])
		first = first[:len(first)+n]
		line, rest, whole := bytes.Cut(first, []byte("\n"))
		switch {
		case whole, len(first) == cap(first):
			p.firstLine <- string(line)
			close(p.firstLine)
			_, _ = p.tail.Write(rest)
			_, _ = io.Copy(p.tail, out)
			return
		case err != nil:
			_, _ = p.tail.Write(first)
			close(p.firstLine)
			return
		}
	}
}

// readGrace limits how long output is read after the process tree has exited, in case another process still
// holds the pipe open.
const readGrace = time.Second

func (p *process) wait(readers *sync.WaitGroup, pipes ...*os.File) {
	_ = p.cmd.Wait() // the exit status is in ProcessState
	p.release()
	for _, pipe := range pipes {
		_ = pipe.SetReadDeadline(time.Now().Add(readGrace))
	}
	readers.Wait()
	for _, pipe := range pipes {
		_ = pipe.Close()
	}
	p.exitText = describeExit(p.cmd.ProcessState)
	close(p.done)
}

// signalBase is the offset that the launcher adds to the number of the signal that killed a program.
const signalBase = 128

// describeExit describes how a process exited. The launcher exits with the program's exit code.
func describeExit(state *os.ProcessState) string {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = signalBase + int(status.Signal())
	}
	if code > signalBase {
		if name := unix.SignalName(syscall.Signal(code - signalBase)); name != "" {
			return "killed by " + name
		}
	}
	return "exit code " + strconv.Itoa(code)
}

// kill kills the process tree without waiting. Only the first cause is recorded.
func (p *process) kill(cause error) {
	p.markStopping(cause)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		_ = p.cmd.Process.Kill() // fails only if it has exited
	}
}

// markStopping records the reason why the process is about to exit.
func (p *process) markStopping(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil && !p.gone() {
		p.cause = cause
	}
}

// exitGrace is the time for a process without a usable connection to exit by itself, so that it can print
// the reason.
const exitGrace = 3 * time.Second

// awaitExit waits for a process to exit by itself, and kills it after exitGrace.
func (p *process) awaitExit(cause error) {
	select {
	case <-p.done:
	case <-time.After(exitGrace):
		p.kill(cause)
		<-p.done
	}
}

// abandon releases a process that go-plugin never started.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.startCalled {
		p.startCalled = true
		p.release()
		close(p.done)
	}
}

// stopping reports whether coven decided to stop the process, even if it has not exited yet.
func (p *process) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause != nil
}

// gone reports whether the whole process tree has exited.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exitError returns a pluginerr.ErrGone that describes how and why the process exited.
func (p *process) exitError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(p.cause, ErrClosed):
		return fmt.Errorf("%w (%w)", p.cause, pluginerr.ErrGone)
	case p.cause != nil:
		return fmt.Errorf("%w: %w%s", pluginerr.ErrGone, p.cause, p.tail.quote())
	}
	return fmt.Errorf("%w: %s%s", pluginerr.ErrGone, p.exitText, p.tail.quote())
}

// The remaining methods of runner.Runner.

// Stdout returns only the handshake line.
func (p *process) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(p.handshake + "\n"))
}

// Stderr returns an empty reader, because launch reads standard error.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Wait waits until the process tree has exited.
func (p *process) Wait(context.Context) error {
	<-p.done
	return nil
}

// Kill kills the process tree and waits.
func (p *process) Kill(context.Context) error {
	p.kill(errGivenUp)
	<-p.done
	return nil
}

// ID implements runner.Runner. coven does not use it.
func (p *process) ID() string { return p.dir }

// Name returns the path of the program.
func (p *process) Name() string { return p.cmd.Path }

// Diagnose returns no further information.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost restricts go-plugin to valid addresses.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, checkAddress(network, address, p.dir)
}

// HostToPlugin returns the address unchanged: both sides share the file system.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
