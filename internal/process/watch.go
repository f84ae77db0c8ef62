package process

import (
	"syscall"
	"time"
)

// watch is a shim's watch over its tree, from the start of the main process to
// the end of the last one.
type watch struct {
	main     int // process ID
	tree     tree
	grace    time.Duration // from TERM to KILL when told to stop
	leftover time.Duration // the same for what the main process leaves behind

	begun    <-chan *failure // nil: nobody asks whether main could be started
	commands <-chan byte     // nil: nobody commands
	started  func(*failure)
	ended    func(ended) // nil: nobody asks

	stopped bool
	over    bool // main is gone
	code    int
	kill    <-chan time.Time
	pause   time.Duration // between two rounds of KILL
}

// run returns the main process's exit code when nothing is left of the tree.
func (w *watch) run(gone <-chan syscall.WaitStatus) int {
	for {
		select {
		case f := <-w.begun:
			w.begin(f)
		case status, more := <-gone:
			if !more {
				return w.code
			}
			w.finish(status)
		case command := <-w.commands:
			w.obey(command)
		case <-w.kill:
			w.tree.signal(syscall.SIGKILL)
			w.pause = min(max(w.pause+w.pause/16, killPause), killPauseMax)
			w.kill = time.After(w.pause)
		}
	}
}

func (w *watch) begin(f *failure) {
	w.begun = nil
	w.started(f)
}

// finish reports how the main process ended and ends what it left behind.
func (w *watch) finish(status syscall.WaitStatus) {
	if w.begun != nil {
		w.begin(<-w.begun) // has come, or comes now: the only writer is gone
	}
	w.over = true
	e := ended{Code: status.ExitStatus(), Stopped: w.stopped}
	w.code = e.Code
	if status.Signaled() {
		e.Code, e.Signal = 0, status.Signal()
		w.code = 128 + int(e.Signal)
	}
	if w.ended != nil {
		w.ended(e)
	}
	if w.kill == nil {
		w.end(w.leftover)
	}
}

func (w *watch) obey(command byte) {
	switch {
	case command == commandKill:
		w.stopped = w.stopped || w.works()
		w.kill = time.After(0)
	case command != commandTerm: // coven is dead
		w.commands = nil
		w.kill = time.After(0)
	case !w.over && !w.stopped:
		w.stopped = w.works()
		w.end(w.grace)
	}
}

// works reports whether the main process is not at its end yet. The kernel knows it
// before the reaper, and before what an ending program pulls down with it can become
// the reason of its end.
func (w *watch) works() bool { return !w.over && !exiting(w.main) }

// end asks the tree to end and sets the time when it will be made to. Who is
// halted is woken up, or it could not hear.
func (w *watch) end(grace time.Duration) {
	if grace > 0 {
		w.tree.signal(syscall.SIGTERM)
		w.tree.signal(syscall.SIGCONT)
	}
	w.kill = time.After(grace)
}
