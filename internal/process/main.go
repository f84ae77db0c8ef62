package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stages of the launcher command after the first, as its last argument.
const (
	reaperStage = "--stage=reaper"
	fenceStage  = "--stage=fence"
)

// exitBroken is the exit code of a launcher that could not do its work.
const exitBroken = 125

// Main is the launcher command; args are what follows its argv prefix. It is
// for a Launcher to start: to a person it says so and returns an exit code.
// Otherwise it ends the process by itself, past the exit hooks of the race
// detector and of coverage, which wait a second or write where nobody reads.
func Main(args []string) int {
	runtime.LockOSThread() // capabilities and what a child inherits belong to a thread
	stage := ""
	if len(args) > 0 {
		stage = args[0]
	}
	if stage == fenceStage {
		syscall.Exit(fence())
	}
	wire, err := takeWire()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coven exec is started by coven itself:", err)
		return 2
	}
	syscall.Exit(wire.serve(stage))
	return 0
}

// wire is a shim's side of the link with coven, or of a reaper with its guard.
type wire struct {
	order   order
	main    int // the program's process ID, once it was started
	memory  *os.File
	control *os.File
	status  *os.File
	// input and terminal are nil when the program inherits our streams.
	input, terminal *os.File
}

// takeWire makes the descriptors the shim was started with its own.
func takeWire() (*wire, error) {
	w := &wire{
		memory:  os.NewFile(orderFd, "order"),
		control: os.NewFile(controlFd, "control"),
		status:  os.NewFile(statusFd, "status"),
	}
	for fd := orderFd; fd <= terminalFd; fd++ {
		unix.CloseOnExec(fd)
	}
	var err error
	w.order, err = readOrder(w.memory)
	if !w.order.Inherit {
		w.input, w.terminal = os.NewFile(inputFd, "input"), os.NewFile(terminalFd, "terminal")
	}
	return w, err
}

func (w *wire) tell(r report) {
	_ = json.NewEncoder(w.status).Encode(r) // fails when coven is dead, and then nobody asks
}

// serve is the shim's life: contain itself, start the next process, watch over
// the tree.
func (w *wire) serve(stage string) int {
	ignoreSignals()
	if err := w.contain(); err != nil {
		return w.fail(newFailure(err))
	}
	switch {
	case w.order.Probe:
		w.tell(report{Ready: true})
		return 0
	case w.order.Containment == Subreaper && stage != reaperStage:
		return w.guard()
	}
	return w.program()
}

// ignoreSignals keeps the tree from ending its shim with a signal: even an init
// dies of those that it handles by dying. What this passes on to other stages
// the fence resets. SIGCHLD is how children are waited for, SIGURG and SIGPROF
// are the Go runtime's own.
func ignoreSignals() {
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if s != syscall.SIGCHLD && s != syscall.SIGURG && s != syscall.SIGPROF {
			signal.Ignore(s)
		}
	}
}

// fail reports why the program cannot be run.
func (w *wire) fail(f *failure) int {
	w.tell(report{Failed: f})
	if w.order.Inherit {
		fmt.Fprintln(os.Stderr, "coven exec:", f.err())
	}
	return exitBroken
}
