package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
)

// ExitStatus returns the error of a command that ran one session.
func ExitStatus(o control.Outcome, err error) error {
	if err != nil {
		return err
	}
	return exit.Status(o.ExitCode())
}

// WithController opens the repository and calls do with a Controller whose sessions are shown
// on the terminal.
func (a *App) WithController(ctx context.Context, do func(*control.Controller) error) error {
	c, err := a.Controller(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer a.Watch(c, false, terminal.Lines)()
	return do(c)
}

// Controller opens the repository and returns a Controller, which the caller closes.
func (a *App) Controller(ctx context.Context) (*control.Controller, error) {
	p, err := a.Open(ctx)
	if err != nil {
		return nil, err
	}
	return a.ControllerOf(p)
}

// ControllerOf returns a Controller of a project, which the caller closes. Workers run the sessions if the user's configuration says so.
func (a *App) ControllerOf(p *project.Project) (*control.Controller, error) {
	c, err := control.New(p)
	if err == nil {
		c.Fleet = a.Fleet(p)
	}
	return c, err
}

// Fleet returns the workers of the user's configuration, or nil.
func (a *App) Fleet(p *project.Project) *fleet.Fleet {
	return fleet.On(p.Config.Run.On, p.Repo.Checkout, a.Self)
}

// Watch shows the sessions of c on the terminal until stop is called.
func (a *App) Watch(c *control.Controller, asJSON bool, draw func(event.Event) string) (stop func()) {
	a.shown = &display{Screen: a.screen(asJSON, draw), json: asJSON, missing: map[string]bool{}}
	c.Parking = a.Park
	c.Ask = func(ctx context.Context, needs []plugins.Need) (err error) {
		if gaveUp := a.shown.Alone(ctx, func() { err = a.AdmitPlugins(ctx, c.Project, needs) }); gaveUp != nil {
			return gaveUp
		}
		return err
	}
	if a.Interactive && !asJSON && c.Unsandboxed == nil {
		c.Unsandboxed = a.acceptUnsandboxed
	}
	a.notices = a.newNotices(c, asJSON)
	c.Observer = control.Observer{
		Began: func(task, title string) {
			a.shown.Name(task, title)
			a.notices.name(task, title)
		},
		Event: a.seeing(c, asJSON),
		Ended: func(o control.Outcome) {
			a.notices.ended(o)
			_ = a.Showf("%s\n  session: %s\n", a.outcome(o), session.Dir+"/"+o.Session) // nothing else can report the error
		},
		Notice: func(n control.Notice) { _ = a.Showf("%s", noticeText(n)) }, // nothing else can report the error
	}
	return func() { c.Settle(); a.approvals.close(); a.notices.close(); a.shown.Close() }
}

// WatchEnds is like Watch for several tasks, but shows only their results, warnings, and changes to the
// repository.
func (a *App) WatchEnds(c *control.Controller) (stop func()) {
	stop = a.Watch(c, false, func(e event.Event) string {
		if e.Type == event.Warning || e.Type == event.RepositoryChanged {
			return terminal.TaskLines(e)
		}
		return ""
	})
	c.Observer.Ended = func(o control.Outcome) {
		a.notices.ended(o)
		_ = a.Showf("%s\n", a.outcome(o)) // nothing else can report the error
	}
	return stop
}

// noticeText returns a notice for a terminal.
func noticeText(n control.Notice) string {
	text := terminal.Printable(n.Text)
	if n.Task != "" {
		text = terminal.Printable(n.Task) + "  " + text
	}
	if n.Next != "" {
		text += "\n  next: " + terminal.Printable(n.Next)
	}
	return text + "\n"
}

// display shows running tasks.
type display struct {
	*terminal.Screen
	json    bool            // prints only events
	missing map[string]bool // missing agent CLIs that were reported
}

// outcome returns how a session ended, in the color of its state.
func (a *App) outcome(o control.Outcome) string {
	text := terminal.PrintableLines(outcomeText(o))
	if !a.Color() {
		return text
	}
	first, rest, more := strings.Cut(text, "\n")
	first = terminal.Color(first, statusColor(o.Status, o.Reason))
	if more {
		first += "\n" + rest
	}
	return first
}

// outcomeText describes how a session ended.
func outcomeText(e control.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", e.Task, e.Status)
	if e.Reason != "" {
		fmt.Fprintf(&b, " (%s)", e.Reason)
	}
	switch {
	case e.Status == session.Completed && e.Commit != "":
		fmt.Fprintf(&b, ": landed %.10s%s", e.Commit, terminal.Colon(e.Summary))
	case e.Status == session.Completed:
		fmt.Fprintf(&b, ": nothing changed%s", terminal.Colon(e.Summary))
	case e.Detail != "":
		fmt.Fprintf(&b, ": %s", oneline.Of(e.Detail))
	}
	if e.Next != "" && e.Status != session.Cancelled { // coven cancel prints the next command itself
		fmt.Fprintf(&b, "\n  next: %s", e.Next)
	}
	return b.String()
}

// screen returns the screen for running tasks. It prints JSON lines, or the text that draw returns.
func (a *App) screen(asJSON bool, draw func(event.Event) string) *terminal.Screen {
	if a.Color() {
		draw = terminal.Colored(draw)
	}
	switch {
	case asJSON:
		return terminal.New(a.Out, terminal.JSONLine, nil)
	case a.Keyboard != nil:
		return terminal.New(a.Out, draw, terminal.NewLive(a.Out, a.Size, a.Now, a.Keyboard, a.Getenv("TERM")))
	}
	return terminal.New(a.Out, draw, nil)
}

// RejectedText describes the result of a rejection.
func RejectedText(d control.Dismissal) string {
	return fmt.Sprintf("%s  rejected; %s\n  next: coven run %s\n", terminal.Printable(d.Task), StoredAs(d.Rescue), terminal.Printable(shellword.Word(d.Task)))
}

// SkippedText explains why a change was not approved with the others.
func SkippedText(v session.View) string {
	return fmt.Sprintf("%s  skipped: %s\n  next: %s\n", terminal.Printable(v.Task), terminal.Printable(control.DetailOf(v)), terminal.Printable(control.NextOf(v)))
}

// StoredAs describes where the work of a session is stored.
func StoredAs(ref string) string {
	if ref == "" {
		return "nothing had to be stored"
	}
	return "everything it made is stored as " + ref
}
