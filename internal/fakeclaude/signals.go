package fakeclaude

import (
	"os"
	"os/signal"
	"syscall"
)

// watchSignals does what the real CLI does. TERM ends the process at once, and a
// command that runs lives on. INT ends the work on the present message, and the
// command with it, and then the process; between messages the process.
func (r *run) watchSignals() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for received := range signals {
			r.out.resetTerminal()
			stop := r.stop.Load()
			switch {
			case received == syscall.SIGTERM:
				os.Exit(128 + int(syscall.SIGTERM))
			case stop == nil:
				os.Exit(0)
			default:
				r.told.Store(true)
				(*stop)()
			}
		}
	}()
}
