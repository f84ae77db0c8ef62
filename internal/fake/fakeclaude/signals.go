package fakeclaude

import (
	"os"
	"os/signal"
	"syscall"
)

// exitTerm is the exit code after TERM.
const exitTerm = 128 + int(syscall.SIGTERM)

// watchSignals handles signals as the real CLI does. TERM ends the process at once unless
// a command is running: then the command is killed first, and its end is reported. INT ends
// the work on the current message and its command, and then the process.
// Between messages it ends the process.
func (r *run) watchSignals() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for received := range signals {
			r.out.resetTerminal()
			stop := r.stop.Load()
			switch {
			case received == syscall.SIGTERM && stop != nil && r.tools.files.commands.Load() > 0:
				r.term.Store(true)
				r.told.Store(true)
				(*stop)()
			case received == syscall.SIGTERM:
				os.Exit(exitTerm)
			case stop == nil:
				os.Exit(0)
			default:
				r.told.Store(true)
				(*stop)()
			}
		}
	}()
}
