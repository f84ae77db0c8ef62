package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// killPause is the time between two rounds of KILL. It grows to killPauseMax, because
	// a process may be stuck in the kernel.
	killPause    = time.Millisecond
	killPauseMax = 20 * time.Millisecond
)

// tree is the set of processes below a shim.
type tree interface {
	signal(signal syscall.Signal)
	// lingers reports whether any process is alive although this process has no children.
	lingers() bool
}

// program runs the program through the fence and returns its exit code when no process
// of the tree is left.
func (w *wire) program() int {
	gate, open, err := os.Pipe()
	if err != nil {
		return w.fail(newFailure(fmt.Errorf("make gate pipe: %w", err)))
	}
	socket, writeReads, err := w.recordReads()
	if err != nil {
		return w.fail(newFailure(err))
	}
	pid, begun, err := w.startFence(gate, socket)
	if err != nil {
		return w.fail(newFailure(err))
	}
	defer writeReads()
	_ = socket.Close()
	tree := treeBelow(w.order.Containment, pid)
	w.tell(report{Main: pid})    // before the program can act, because the shim may be killed at any time
	_, _ = open.Write([]byte{0}) // fails only if the fence is dead, which begun reports
	_ = open.Close()
	watch := &watch{
		main: pid, tree: tree, grace: w.order.Grace, leftover: w.order.Leftover,
		begun: begun, commands: readCommands(w.control),
		started: w.started,
		ended:   func(e ended) { w.tell(report{Ended: &e}) },
	}
	return watch.run(reap(pid, 0, tree.lingers))
}

// started reports whether the program runs.
func (w *wire) started(f *failure) {
	if f == nil {
		w.tell(report{Ready: true})
		return
	}
	w.fail(f)
}

// startFence starts the process that becomes the program once gate yields a
// byte. socket may be nil. It closes gate. The channel yields nil if that succeeds, or else the reason.
func (w *wire) startFence(gate, socket *os.File) (int, <-chan *failure, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, nil, fmt.Errorf("make fence pipe: %w", err)
	}
	files := []uintptr{0, 1, 2, w.memory.Fd(), writer.Fd(), gate.Fd(), socket.Fd()}
	if !w.order.Inherit {
		files[0], files[1], files[2] = w.input.Fd(), w.terminal.Fd(), w.terminal.Fd()
	}
	pid, err := w.next(fenceStage, files...)
	if err = errors.Join(err, writer.Close(), gate.Close(), w.memory.Close()); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("start fence: %w", err), reader.Close())
	}
	begun := make(chan *failure, 1)
	go func() {
		var f *failure
		if json.NewDecoder(reader).Decode(&f) != nil { // end of file: exec succeeded
			f = nil
		}
		begun <- f
	}()
	return pid, begun, nil
}

// next starts another stage of the launcher in its own session, and closes the read
// end of the program's standard input, so that the writer notices when the program
// ends. The terminal stays open: its end of file marks the end of the tree.
func (w *wire) next(stage string, files ...uintptr) (int, error) {
	program, err := ownProgram()
	if err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(program, append(plain(w.order.Self), stage), &syscall.ProcAttr{
		Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	if !w.order.Inherit {
		return pid, w.input.Close()
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return pid, err
	}
	return pid, errors.Join(ontoInput(null), null.Close())
}

// readCommands returns coven's commands; the last one is 0, which means that coven is dead.
func readCommands(control *os.File) <-chan byte {
	commands := make(chan byte, 2)
	go func() {
		order := []byte{0}
		for {
			n, err := control.Read(order)
			if err != nil {
				commands <- 0
				return
			}
			if n > 0 {
				commands <- order[0]
			}
		}
	}()
	return commands
}

// reap waits for all children, including adopted ones. The channel yields the status
// of main, and is closed when no child is left and nothing lingers. In an init or a
// subreaper, no process of the tree is alive then.
func reap(main, options int, lingers func() bool) <-chan syscall.WaitStatus {
	gone := make(chan syscall.WaitStatus, 1)
	go func() {
		defer close(gone)
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, options, nil)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil: // ECHILD
				for lingers() {
					<-time.After(killPauseMax)
				}
				return
			case status.Stopped():
				_ = syscall.Kill(pid, syscall.SIGCONT) // a reaper must not be halted
			case pid == main:
				gone <- status
			}
		}
	}()
	return gone
}
