// Package cli holds what the commands of coven share: the process and its streams, how
// people are asked, how tasks at work are shown, and shell completion.
//
// Each package below it is one command, or the commands about one noun. They import
// this package and internal/control, never each other; package root puts them together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// App is what every command is given. What costs something is a func.
type App struct {
	*project.Environment

	In       io.Reader
	Out, Err io.Writer

	// Work that parks what it has begun when it is interrupted; see parking.
	parks   atomic.Int32
	shown   *display         // nil: no task is at work
	project *project.Project // that the command has opened; its secrets are not printed

	// The terminal: whether a person can be asked, and how wide lines are.
	Interactive bool
	Size        func() (width, height int)
}

// Open opens the repository that the user stands in.
func (a *App) Open(ctx context.Context) (*project.Project, error) {
	p, err := project.Open(ctx, a.Environment)
	a.project = p
	return p, err
}

// hidden is a text without secrets.
func (a *App) hidden(text string) string {
	if a.project == nil {
		return text
	}
	return a.project.Hidden(text)
}

// InterruptedBy is the error of a command that failed after an interrupt. What failed
// only because it was interrupted says so.
func InterruptedBy(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return control.ErrInterrupted
	case exit.Code(err) == exit.Failed:
		if exit.IsSilent(err) {
			return exit.Status(exit.Interrupted)
		}
		return &exit.Error{Exit: exit.Interrupted, Err: err}
	}
	return err
}

// PrintError says what went wrong and what to do next.
func (a *App) PrintError(err error) {
	if err == nil || exit.IsSilent(err) {
		return
	}
	fmt.Fprintln(a.Err, "coven:", terminal.PrintableLines(a.hidden(err.Error()))) //nolint:errcheck // there is nobody else to tell
	if next := exit.Next(err); next != "" {
		fmt.Fprintln(a.Err, "  next:", terminal.Printable(next)) //nolint:errcheck // there is nobody else to tell
	}
}

// PrintDamaged prints what is wrong with sessions whose record cannot be read.
func (a *App) PrintDamaged(views []session.View) {
	for _, v := range views {
		a.PrintError(exit.Personf(control.NextOf(v), "session %s is damaged: %s", v.ID, v.Detail))
	}
}

// Park marks the time in which an interrupt is answered by parking what was begun.
// Outside of it coven ends soon after an interrupt, wherever it is.
func (a *App) Park() (done func()) {
	a.parks.Add(1)
	return func() { a.parks.Add(-1) }
}

// An interrupt is answered within stopTicks * stopTick, unless something is parked.
const (
	StopTick  = 100 * time.Millisecond
	StopTicks = 7
)

// exitSoon ends the process when it does not end by itself after an interrupt: it may be
// held up by a read or a lock that knows of no interrupts. All that coven records
// survives that, as it survives a kill.
func (a *App) exitSoon(done <-chan struct{}) {
	ticker := time.NewTicker(StopTick)
	defer ticker.Stop()
	for idle := 0; idle < StopTicks; {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if idle++; a.parks.Load() > 0 {
			idle = 0
		}
	}
	a.PrintError(control.ErrInterrupted)
	os.Exit(exit.Interrupted)
}

// Interruptible returns a context that ends at the first Ctrl-C, TERM, or when the
// terminal is closed, with a cause that says so. A second Ctrl-C or TERM ends the
// process at once: the kernel then ends everything that it started. A closed
// terminal may be told of twice.
func (a *App) Interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader of coven's output that goes away stops no run. The signal is
	// caught and not ignored: children would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-signals:
			cancel(control.ErrInterrupted)
			go a.exitSoon(done)
		}
		for {
			select {
			case <-done:
				return
			case again := <-signals:
				if again != syscall.SIGHUP {
					os.Exit(exit.Interrupted)
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel(nil) }
}
