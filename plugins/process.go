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

// process is one process of a plugin with all that it starts: go-plugin's
// runner.Runner.
//
// What the plugin prints is read for ever and at once, whatever it is: its first
// line is its greeting, of the rest the end is kept. Of all this go-plugin is
// given one line, which has been checked.
type process struct {
	cmd     *exec.Cmd
	release func()
	speaks  []int  // versions of the contract
	dir     string // where its sockets are
	tail    *tail

	firstLine chan string   // its first line, at most mostGreeting bytes; closed after it
	handshake string        // the same, when it was right
	done      chan struct{} // closed when nothing of its tree is alive and all is read
	exitText  string        // how it ended; set before done

	mu          sync.Mutex
	startCalled bool  // Start was called
	started     bool  // and it runs, or did
	cause       error // why coven ended it
}

// errGivenUp is the cause of a process that go-plugin did not want.
var errGivenUp = errors.New("go-plugin gave it up")

// newProcess takes an unstarted command with its environment.
func newProcess(cmd *exec.Cmd, release func(), speaks []int, kept *tail) *process {
	return &process{
		cmd: cmd, release: release, speaks: speaks, tail: kept,
		firstLine: make(chan string, 1), done: make(chan struct{}),
	}
}

// Start implements runner.Runner. It returns when the plugin has greeted: until
// then go-plugin has nothing to do.
func (p *process) Start(context.Context) error {
	if err := p.launch(); err != nil {
		p.release()
		close(p.done)
		return err
	}
	line, greeted := <-p.firstLine
	if !greeted {
		p.awaitExit(errors.New("it closed its standard output without a greeting"))
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

// launch starts the process and what reads from it.
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

// readOutput reads the greeting and then all the rest.
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

// readGrace is how long what a plugin printed is waited for when nothing of it
// lives any more and somebody else still holds the pipe.
const readGrace = time.Second

func (p *process) wait(readers *sync.WaitGroup, pipes ...*os.File) {
	_ = p.cmd.Wait() // how it ended is in its state
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

// signalBase is what the launcher adds to the signal that ended a program.
const signalBase = 128

// describeExit says how a process ended; the launcher's exit code is the program's.
func describeExit(state *os.ProcessState) string {
	code := state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = signalBase + int(status.Signal())
	}
	if code > signalBase {
		if name := unix.SignalName(syscall.Signal(code - signalBase)); name != "" {
			return "it was ended by " + name
		}
	}
	return "it ended with exit code " + strconv.Itoa(code)
}

// kill ends the process and all of its tree, without waiting for it. The first
// cause is the one that counts.
func (p *process) kill(cause error) {
	p.markStopping(cause)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		_ = p.cmd.Process.Kill() // fails only when it is gone
	}
}

// markStopping says why the process will be gone soon.
func (p *process) markStopping(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil && !p.gone() {
		p.cause = cause
	}
}

// exitGrace is how long a process that can do nothing for coven any more may
// take to end by itself, so that it says why.
const exitGrace = 3 * time.Second

// awaitExit waits for the end of such a process, and makes it.
func (p *process) awaitExit(cause error) {
	select {
	case <-p.done:
	case <-time.After(exitGrace):
		p.kill(cause)
		<-p.done
	}
}

// abandon lets go of a process that go-plugin never came to start.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.startCalled {
		p.startCalled = true
		p.release()
		close(p.done)
	}
}

// stopping says that its end was decided, whether it is gone by now or not.
func (p *process) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause != nil
}

// gone says that nothing of it lives.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exitError says how a process that is gone ended, and why: a pluginerr.ErrGone.
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

// The rest of runner.Runner.

// Stdout is the greeting and nothing else.
func (p *process) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(p.handshake + "\n"))
}

// Stderr is empty: what comes there is read already.
func (p *process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Wait returns when nothing of the process lives.
func (p *process) Wait(context.Context) error {
	<-p.done
	return nil
}

// Kill ends the process and waits for that.
func (p *process) Kill(context.Context) error {
	p.kill(errGivenUp)
	<-p.done
	return nil
}

// ID names the process for nobody.
func (p *process) ID() string { return p.dir }

// Name is the program's.
func (p *process) Name() string { return p.cmd.Path }

// Diagnose has nothing to add.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost lets go-plugin reach no other address than a right one.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, checkAddress(network, address, p.dir)
}

// HostToPlugin changes nothing: both sides see the same files.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
