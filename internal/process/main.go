package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process/reads"
)

// Stages of the launcher command after the first, as its last argument.
const (
	reaperStage = "--stage=reaper"
	fenceStage  = "--stage=fence"
	// compareStage is a program of a task: see Launcher.Compare.
	compareStage = "--stage=compare"
)

// exitNotBegun is the exit code of a fence that failed to start the program.
const exitNotBegun = 127

// exitBroken is the exit code of a launcher that failed.
const exitBroken = 125

// Main is the launcher command. args are the arguments after its argv prefix. Only a
// Launcher may start it; otherwise it prints an error and returns an exit code. Normally
// it does not return but exits without the exit hooks of the race detector and of
// coverage, which would wait a second or write elsewhere.
func Main(args []string) int {
	runtime.LockOSThread() // capabilities and inherited attributes belong to a thread
	stage := ""
	if len(args) > 0 {
		stage = args[0]
	}
	if stage == fenceStage {
		fence()
		syscall.Exit(exitNotBegun)
	}
	if stage == compareStage {
		if err := reads.Compare(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	wire, err := takeWire()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coven exec is started by coven itself:", err)
		return 2
	}
	syscall.Exit(wire.serve(stage))
	return 0
}

// wire is the shim's side of the link to coven, or the reaper's side of the link to
// its guard.
type wire struct {
	order   order
	memory  *os.File
	control *os.File
	status  *os.File
	// input and terminal are nil when the program inherits our streams.
	input, terminal *os.File
}

// takeWire opens the descriptors that the shim was started with.
func takeWire() (*wire, error) {
	w := &wire{
		memory:  os.NewFile(orderFd, "order"),
		control: os.NewFile(controlFd, "control"),
		status:  os.NewFile(statusFd, "status"),
	}
	for fd := orderFd; fd <= readsFd; fd++ {
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
	_ = json.NewEncoder(w.status).Encode(r) // fails only if coven is dead
}

// serve runs the shim: it contains itself, starts the next process and watches the
// tree.
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

// ignoreSignals prevents the tree from killing its shim with a signal. The fence
// resets the inherited actions. SIGCHLD is needed to wait for children; the Go runtime
// uses SIGURG and SIGPROF.
func ignoreSignals() {
	for s := syscall.Signal(1); s <= lastSignal; s++ {
		if s != syscall.SIGCHLD && s != syscall.SIGURG && s != syscall.SIGPROF {
			signal.Ignore(s)
		}
	}
	ignoreReserved()
}

// fail reports the reason why the program cannot be run.
func (w *wire) fail(f *failure) int {
	w.tell(report{Failed: f})
	if w.order.Inherit {
		fmt.Fprintln(os.Stderr, "coven exec:", f.err())
	}
	return exitBroken
}
