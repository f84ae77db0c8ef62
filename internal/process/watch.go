package process

import (
	"syscall"
	"time"
)

// watch is a shim's supervision of its tree, from the start of the main process to the
// end of the last process.
type watch struct {
	main     int // process ID
	tree     tree
	grace    time.Duration // from TERM to KILL on a stop command
	leftover time.Duration // the same for processes left behind by main

	begun    <-chan *failure // nil if the start of main is not reported
	commands <-chan byte     // nil if there are no commands
	started  func(*failure)
	ended    func(ended) // nil if the end of main is not reported

	stopped bool
	over    bool // main has ended
	code    int
	kill    <-chan time.Time
	pause   time.Duration // between two rounds of KILL
}

// run returns the main process's exit code when no process of the tree is left.
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

// finish reports how the main process ended and ends the processes that it left
// behind.
func (w *watch) finish(status syscall.WaitStatus) {
	if w.begun != nil {
		w.begin(<-w.begun) // cannot block: the only writer has ended
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
		w.stopped = w.stopped || w.running()
		w.kill = time.After(0)
	case command != commandTerm: // coven is dead
		w.commands = nil
		w.kill = time.After(0)
	case !w.over && !w.stopped:
		w.stopped = w.running()
		w.end(w.grace)
	}
}

// running reports whether the main process is still running. It asks the kernel, which
// knows earlier than the reaper, so that consequences of its exit are not mistaken for the
// cause.
func (w *watch) running() bool { return !w.over && !exiting(w.main) }

// end sends TERM to the tree and schedules KILL. Halted processes are
// continued, so that they receive the signal.
func (w *watch) end(grace time.Duration) {
	if grace > 0 {
		w.tree.signal(syscall.SIGTERM)
		w.tree.signal(syscall.SIGCONT)
	}
	w.kill = time.After(grace)
}
