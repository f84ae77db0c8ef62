package main

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

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
)

// app is what every command is given. What costs something is a func.
type app struct {
	*env

	in       io.Reader
	out, err io.Writer

	// Work that parks what it has begun when it is interrupted; see parking.
	parks   atomic.Int32
	shown   *display // nil: no task is at work
	project *house   // that the command has opened; its secrets are not printed

	// The terminal: whether a person can be asked, and how wide lines are.
	interactive bool
	size        func() (width, height int)
}

// open opens the repository that the user stands in.
func (a *app) open(ctx context.Context) (*house, error) {
	h, err := open(ctx, a.env)
	a.project = h
	return h, err
}

// hidden is a text without secrets.
func (a *app) hidden(text string) string {
	if a.project == nil {
		return text
	}
	return a.project.hidden(text)
}

// interruptedBy is the error of a command that failed after an interrupt. What failed
// only because it was interrupted says so.
func interruptedBy(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return errInterrupted
	case exit.Code(err) == exit.Failed:
		if exit.IsSilent(err) {
			return exit.Status(exit.Interrupted)
		}
		return &exit.Error{Exit: exit.Interrupted, Err: err}
	}
	return err
}

// explain says what went wrong and what to do next.
func (a *app) explain(err error) {
	if err == nil || exit.IsSilent(err) {
		return
	}
	fmt.Fprintln(a.err, "coven:", terminal.PrintableLines(a.hidden(err.Error()))) //nolint:errcheck // there is nobody else to tell
	if next := exit.Next(err); next != "" {
		fmt.Fprintln(a.err, "  next:", terminal.Printable(next)) //nolint:errcheck // there is nobody else to tell
	}
}

// parking marks the time in which an interrupt is answered by parking what was begun.
// Outside of it coven ends soon after an interrupt, wherever it is.
func (a *app) parking() (done func()) {
	a.parks.Add(1)
	return func() { a.parks.Add(-1) }
}

// An interrupt is answered within stopTicks * stopTick, unless something is parked.
const (
	stopTick  = 100 * time.Millisecond
	stopTicks = 7
)

// endSoon ends the process when it does not end by itself after an interrupt: it may be
// held up by a read or a lock that knows of no interrupts. All that coven records
// survives that, as it survives a kill.
func (a *app) endSoon(done <-chan struct{}) {
	ticker := time.NewTicker(stopTick)
	defer ticker.Stop()
	for idle := 0; idle < stopTicks; {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		if idle++; a.parks.Load() > 0 {
			idle = 0
		}
	}
	a.explain(errInterrupted)
	os.Exit(exit.Interrupted)
}

// interruptible returns a context that ends at the first Ctrl-C, TERM, or when the
// terminal is closed, with a cause that says so. A second Ctrl-C or TERM ends the
// process at once: the kernel then ends everything that it started. A closed
// terminal may be told of twice.
func (a *app) interruptible() (context.Context, func()) {
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
			cancel(errInterrupted)
			go a.endSoon(done)
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
