// Package cli holds the code that commands share: the process and its streams, questions to the user, the
// display of running tasks, and shell completion.
//
// Each package below it is one command, or the commands about one noun. These packages import this one and
// internal/control, but not each other. Package root combines them.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// App is the environment of the commands: the process, its streams and its terminal. Expensive fields are
// funcs.
type App struct {
	*project.Environment

	In       io.Reader
	Out, Err io.Writer

	// parks counts the operations that save their work after an interrupt; see Park.
	parks     atomic.Int32
	takes     atomic.Pointer[func() bool] // see OnInterrupt
	paging    atomic.Int32                // pagers on the terminal, which get each Ctrl-C
	shown     *display                    // nil while no task is running
	approvals approvals
	notices   *notices         // nil if there are none
	lines     chan line        // from the input; nil while no question waits for one
	inputRead bool             // the input has been read to its end; see Input
	project   *project.Project // opened by the command; its secrets are not printed

	// The terminal: whether Out is one, whether it can ask the user, and its size.
	Terminal    bool
	Interactive bool
	Size        func() (width, height int)
	Keyboard    *terminal.Keyboard // nil if the terminal cannot report single keys
}

// Open opens the repository that contains the user's directory.
func (a *App) Open(ctx context.Context) (*project.Project, error) {
	p, err := project.Open(ctx, a.Environment)
	a.project = p
	return p, err
}

// InProject returns a function for cobra.Command.RunE that opens the repository and calls run with it.
func (a *App) InProject(run func(*cobra.Command, *project.Project, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		p, err := a.Open(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd, p, args)
	}
}

// OpenOrOutside opens the repository that contains the user's directory, if there is one. It need not have a
// commit.
func (a *App) OpenOrOutside(ctx context.Context) (*project.Project, error) {
	p, err := project.OpenOrOutside(ctx, a.Environment)
	a.project = p
	return p, err
}

// hidden returns a text without secrets.
func (a *App) hidden(text string) string {
	if a.project == nil {
		return text
	}
	return a.project.Hidden(text)
}

// InterruptedBy converts the error of a command that failed after an interrupt.
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

// PrintError prints an error and its next command. The default is coven doctor, or coven status after an
// interrupt.
func (a *App) PrintError(err error) {
	if err == nil || exit.IsSilent(err) {
		return
	}
	fmt.Fprintln(a.Err, "coven:", terminal.PrintableLines(a.hidden(err.Error()))) //nolint:errcheck // nothing else can report it
	general := "coven doctor"
	if exit.Code(err) == exit.Interrupted {
		general = "coven status"
	}
	fmt.Fprintln(a.Err, "  next:", terminal.Printable(cmp.Or(exit.Next(err), general))) //nolint:errcheck // nothing else can report it
}

// PrintDamaged prints the damage of unreadable sessions.
func (a *App) PrintDamaged(views []session.View) {
	for _, v := range views {
		a.PrintError(exit.Personf(control.NextOf(v), "session %s is damaged: %s", v.ID, v.Detail))
	}
}

// Park marks work that is saved after an interrupt, until done is called. At other times coven exits soon
// after an interrupt.
func (a *App) Park() (done func()) {
	a.parks.Add(1)
	return func() { a.parks.Add(-1) }
}

// coven exits within StopTicks * StopTick after an interrupt, unless it is saving work.
const (
	StopTick  = 100 * time.Millisecond
	StopTicks = 7
)

// exitSoon ends the process if it does not end by itself after an interrupt, because a read or a lock may
// ignore interrupts. All records survive this, as they survive a kill.
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
	a.exitNow(func() { a.PrintError(control.ErrInterrupted) })
}

// exitNow ends the process after an interrupt. It restores the terminal and calls say, if the terminal
// accepts output.
func (a *App) exitNow(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		if a.Keyboard != nil {
			a.Keyboard.Release()
			_, _ = io.WriteString(a.Out, terminal.EraseBelow) // the live lines
		}
		say()
	}()
	select {
	case <-said:
	case <-time.After(StopTick):
	}
	os.Exit(exit.Interrupted)
}

// OnInterrupt passes each Ctrl-C to take until restore is called. If take returns false, coven is
// interrupted.
func (a *App) OnInterrupt(take func() bool) (restore func()) {
	a.takes.Store(&take)
	return func() { a.takes.Store(nil) }
}

func (a *App) takesInterrupt() bool {
	take := a.takes.Load()
	return take != nil && (*take)()
}

// Interruptible returns a context that the first Ctrl-C, TERM or HUP cancels, with ErrInterrupted as its
// cause. A second Ctrl-C or TERM ends the process at once, and the kernel ends its children. A closed
// terminal may send HUP twice.
func (a *App) Interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A run continues when the reader of its output goes away. The signal is caught rather than ignored,
	// because children would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for interrupted := false; ; {
			select {
			case <-done:
				return
			case s := <-signals:
				switch {
				case s == os.Interrupt && (a.paging.Load() > 0 || a.takesInterrupt()):
				case !interrupted:
					interrupted = true
					cancel(control.ErrInterrupted)
					go a.exitSoon(done)
				case s != syscall.SIGHUP:
					a.exitNow(func() {})
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); close(done); cancel(nil) }
}
