package process

import (
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
)

// lastResort is how long after the grace a shim may still be busy ending its
// tree before coven kills the shim itself.
const lastResort = 5 * time.Second

// maxComplaint is how many bytes of a broken shim's standard error are told.
const maxComplaint = 4096

// Child is one running program with everything it started.
//
// Its owner reads Output to the end and calls Wait, or calls Close: the terminal
// stays open until one of the two happened.
type Child struct {
	mode   mode
	grace  time.Duration
	link   *link
	stdin  *os.File
	output *output
	clocks *clocks
	detach func() bool // from the context
	onStop func()      // may be nil

	complaints *os.File // the shim's standard error, a memory file

	spawned chan struct{} // closed when the shim runs or could not be started
	up      chan struct{} // closed when the program runs
	heard   chan struct{} // closed at the end of the shim's reports
	done    chan struct{} // closed when the tree is gone and exit is set

	process   *os.Process // the shim, or the guard; set before spawned
	namespace inode       // of the child's PID namespace; set before spawned
	main      int         // process ID as the shim sees it; set before heard
	failed    *failure    // set before heard
	ended     *ended      // set before heard
	exit      Exit        // set before done

	mu     sync.Mutex
	cause  error
	killer *time.Timer
}

// Stdin is the program's standard input, a pipe. Close it to end the input.
// Writing blocks while the program does not read; when it is gone, it fails.
func (c *Child) Stdin() io.WriteCloser { return input{c.stdin} }

// Output is what the program wrote, standard output and error in one: raw
// bytes, io.EOF when the tree is gone and everything was read. As long as
// nobody reads, a program that writes much waits; Stop and Wait work all the
// same. Not for several readers at once.
func (c *Child) Output() io.Reader { return c.output }

// Pause makes the Timeout and Idle clocks stand still until Resume, for the
// time a child waits for a person. Pauses nest.
func (c *Child) Pause() { c.clocks.pause() }

// Resume takes back one Pause.
func (c *Child) Resume() { c.clocks.resume() }

// Stop ends the whole tree: TERM, the grace, KILL. It does not block. The first
// cause is kept for Exit; nil stands for ErrStopped.
func (c *Child) Stop(cause error) { c.stop(cause, commandTerm) }

// Kill is Stop without TERM and grace: a program that is asked to end could do
// one more thing.
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

// kill ends a shim that does not do its work. In a namespace that ends the
// tree; otherwise the process killed is the guard, and the shim sees it die.
func (c *Child) kill() {
	<-c.spawned
	if c.process != nil {
		_ = c.process.Kill() // fails only when it is gone
	}
}

// Wait returns when nothing of the tree is alive, whoever's child or session
// leader it became. It may be called more than once and from several places.
func (c *Child) Wait() Exit {
	<-c.done
	return c.exit
}

// Close stops the child if it still runs, waits, hands what was not read to the
// transcript and closes the terminal. Call it from where Output is read, or
// when nobody reads it any more. Further calls do nothing.
func (c *Child) Close() error {
	c.Stop(nil)
	c.Wait()
	return c.output.drain()
}

// supervise starts the shim and waits for it, on a thread of its own that lives
// as long as the shim: the kernel's parent death signal speaks of the thread.
func (c *Child) supervise(cmd *exec.Cmd) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	err = errors.Join(err, c.link.handOver())
	if cmd.Process != nil {
		c.process = cmd.Process
		c.namespace = namespaceOf(cmd.Process.Pid)
	}
	close(c.spawned)
	if cmd.Process != nil {
		err = errors.Join(err, cmd.Wait())
	}
	<-c.heard // without a namespace the shim may outlive its guard
	if c.mode.containment == ProcessGroup && c.ended == nil && c.main != 0 {
		endFamily(c.main)
	}
	c.conclude(err)
}

// listen takes the shim's reports in until there can be no more.
func (c *Child) listen() {
	defer close(c.heard)
	decoder := json.NewDecoder(c.link.status)
	for {
		var r report
		if decoder.Decode(&r) != nil { // end of file; a torn report is none
			return
		}
		switch {
		case r.Ready:
			c.main = r.Main
			c.clocks.resume()
			close(c.up)
		case r.Failed != nil:
			c.failed = r.Failed
		case r.Ended != nil:
			c.ended = r.Ended
		}
	}
}

// conclude runs when the tree is gone.
func (c *Child) conclude(err error) {
	c.detach()
	c.clocks.end()
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
	_ = input{c.stdin}.Close() // a pipe to nobody
	_ = c.link.close()
	_ = c.complaints.Close()
	close(c.done)
}

// verdict makes the exit out of what the shim reported; err is how it ended.
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

// broken tells why the shim ended before the program, with what it complained of.
func (c *Child) broken(err error) error {
	said, reading := io.ReadAll(io.NewSectionReader(c.complaints, 0, maxComplaint))
	text := strings.TrimSpace(string(said))
	if text == "" {
		text = "it ended before the program"
	}
	return errors.Join(fmt.Errorf("%w: %s", ErrLauncher, text), err, reading)
}

// input is a pipe whose end may be closed by its user and by us.
type input struct{ *os.File }

// Close does nothing when it is closed already.
func (i input) Close() error {
	if err := i.File.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
