package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/process/timelimit"
)

// lastResort is the time after the grace in which a shim must have ended its tree.
// Then coven kills the shim itself.
const lastResort = 5 * time.Second

// maxShimError limits the reported part of a broken shim's standard error in bytes.
const maxShimError = 4096

// Child is a running program with all processes that it started.
//
// The owner must read Output to the end and call Wait, or call Close. Until then the
// terminal stays open.
type Child struct {
	mode   mode
	grace  time.Duration
	link   *link
	stdin  *os.File
	output *output
	clocks *timelimit.Clocks
	detach func() bool // detaches from the context
	onStop func()      // may be nil

	shimErrors *os.File // the shim's standard error, a memory file

	spawned  chan struct{} // closed when the shim runs or failed to start
	up       chan struct{} // closed when the program runs
	reported chan struct{} // closed at the end of the shim's reports
	done     chan struct{} // closed when the tree is gone and exit is set

	process   *os.Process // the shim, or the guard; set before spawned
	namespace inode       // of the child's PID namespace; set before spawned
	main      int         // process ID in the shim's namespace; set before reported
	failed    *failure    // set before reported
	ended     *ended      // set before reported
	exit      Exit        // set before done

	mu     sync.Mutex
	cause  error
	killer *time.Timer
}

// Stdin returns the program's standard input, a pipe. Close it to end the input.
// Writing blocks while the program does not read, and fails after it has ended.
func (c *Child) Stdin() io.WriteCloser { return input{c.stdin} }

// Output returns the raw standard output and error of the program, combined. It
// returns io.EOF when the tree has ended and everything is read. If it is not read, a
// program with much output blocks; Stop and Wait still work. It must not be read
// concurrently.
func (c *Child) Output() io.Reader { return c.output }

// Pause stops the Timeout and Idle clocks until Resume, for example while a child
// waits for a person. Pauses nest.
func (c *Child) Pause() { c.clocks.Pause() }

// Resume undoes one Pause.
func (c *Child) Resume() { c.clocks.Resume() }

// Stop ends the whole tree: TERM, the grace, KILL. It does not block. Exit reports the
// first cause; nil means ErrStopped.
func (c *Child) Stop(cause error) { c.stop(cause, commandTerm) }

// Kill is like Stop without TERM and grace, for a program that must not run any longer.
func (c *Child) Kill(cause error) { c.stop(cause, commandKill) }

func (c *Child) stop(cause error, command byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	if c.cause = cause; cause == nil {
		c.cause = ErrStopped
	}
	if c.onStop != nil {
		c.onStop()
	}
	c.link.terminate(command)
	c.killer = time.AfterFunc(c.grace+lastResort, c.kill)
}

// kill kills an unresponsive shim. In a namespace that ends the tree. Otherwise it
// kills the guard, and the shim notices that.
func (c *Child) kill() {
	<-c.spawned
	if c.process != nil {
		_ = c.process.Kill() // fails only if it has ended
	}
}

// Wait returns when no process of the tree is alive, including orphans and processes
// in other sessions. It may be called several times and concurrently.
func (c *Child) Wait() Exit {
	<-c.done
	return c.exit
}

// Close stops the child if it still runs, waits, writes unread output to the
// transcript and closes the terminal. It must not be called while Output is being
// read. Further calls do nothing.
func (c *Child) Close() error {
	c.Stop(nil)
	c.Wait()
	return c.output.drain()
}

// startThread runs functions on a thread that lives as long as coven: the kernel sends the
// parent death signal when the thread ends that has started a process.
var startThread = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range todo {
			do()
		}
	}()
	return todo
})

// launch starts a process that lives no longer than coven.
func launch(cmd *exec.Cmd) error {
	started := make(chan error)
	startThread() <- func() { started <- cmd.Start() }
	return <-started
}

// supervise starts the shim and waits for it.
func (c *Child) supervise(cmd *exec.Cmd) {
	err := launch(cmd)
	err = errors.Join(err, c.link.handOver())
	if cmd.Process != nil {
		c.process = cmd.Process
		c.namespace = namespaceOf(cmd.Process.Pid)
	}
	close(c.spawned)
	if cmd.Process != nil {
		<-c.reported // Wait occupies a thread: it is called when the shim has ended, or is about to
		err = errors.Join(err, cmd.Wait())
	}
	<-c.reported // without a namespace the shim may outlive its guard
	if c.mode.containment == ProcessGroup && c.ended == nil && c.main != 0 {
		endFamily(c.main)
	}
	c.conclude(err)
}

// listen reads the shim's reports until no more can come.
func (c *Child) listen() {
	defer close(c.reported)
	decoder := json.NewDecoder(c.link.status)
	for {
		var r report
		if decoder.Decode(&r) != nil { // end of file, or an incomplete report
			return
		}
		switch {
		case r.Main != 0:
			c.main = r.Main
		case r.Ready:
			c.clocks.Resume()
			close(c.up)
		case r.Failed != nil:
			c.failed = r.Failed
		case r.Ended != nil:
			c.ended = r.Ended
		}
	}
}

// conclude runs when the tree has ended.
func (c *Child) conclude(err error) {
	c.detach()
	c.clocks.End()
	c.mu.Lock()
	if c.cause == nil {
		c.cause = ErrStopped // nothing is left to stop
		c.exit = c.verdict(nil, err)
	} else {
		c.exit = c.verdict(c.cause, err)
	}
	if c.killer != nil {
		c.killer.Stop()
	}
	c.mu.Unlock()
	c.output.end()
	_ = input{c.stdin}.Close() // the pipe has no reader
	_ = c.link.close()
	_ = c.shimErrors.Close()
	close(c.done)
}

// verdict returns the exit according to the shim's reports; err is the error of the
// shim.
func (c *Child) verdict(cause, err error) Exit {
	switch {
	case c.ended == nil && cause != nil:
		exit := killed(syscall.SIGKILL)
		exit.Cause = cause
		return exit
	case c.ended == nil:
		return Exit{Code: -1, Err: c.broken(err)}
	}
	exit := Exit{Code: c.ended.Code}
	if c.ended.Signal != 0 {
		exit = killed(c.ended.Signal)
	}
	if c.ended.Stopped {
		exit.Cause = cause
	}
	return exit
}

// broken returns the reason why the shim ended before the program, with the shim's
// standard error.
func (c *Child) broken(err error) error {
	said, reading := io.ReadAll(io.NewSectionReader(c.shimErrors, 0, maxShimError))
	text := cmp.Or(strings.TrimSpace(string(said)), "it ended before the program")
	return errors.Join(fmt.Errorf("%w: %s", ErrLauncher, text), err, reading)
}

// input is a pipe whose end may be closed by its user and by us.
type input struct{ *os.File }

// Close does nothing if the pipe is already closed.
func (i input) Close() error {
	if err := i.File.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
