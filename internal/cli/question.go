package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/cli/reviewpage"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/scheduler"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// reviewOptions are the answers about a change, yesNo those about its findings.
var (
	reviewOptions = []terminal.Option{
		{Key: "a", Word: "approve", Help: "land the change"},
		{Key: "d", Word: "diff", Help: "show what it changes, in your pager"},
		{Key: "v", Word: "view", Help: "show the whole review page, in your pager"},
		{Key: "c", Word: "changes", Help: "request changes: the agent continues with your comment"},
		{Key: "r", Word: "reject", Help: "store the change and reopen the task; the next attempt is told why"},
		{Key: "l", Word: "later", Help: "leave the change waiting"},
		{Key: "?", Help: "explain the keys"},
	}
	yesNo = []terminal.Option{{Key: "y", Word: "yes"}, {Key: "n", Word: "no"}}
)

// errElsewhere ends a question that was answered elsewhere.
var errElsewhere = errors.New("answered elsewhere")

// pollInterval is the interval at which an open question checks whether it was answered elsewhere.
const pollInterval = 500 * time.Millisecond

// question is an open question about a change.
type question struct {
	app        *App
	controller *control.Controller
	view       session.View
}

// Question asks the user about a change, below the lines of running tasks.
func (a *App) Question(ctx context.Context, c *control.Controller, v session.View) (scheduler.Decision, error) {
	q := question{app: a, controller: c, view: v}
	asking, over := context.WithCancelCause(ctx)
	defer over(nil)
	go q.watch(asking, over)
	decided, err := q.ask(ctx, asking)
	if ctx.Err() == nil && (err != nil || decided.Verdict != scheduler.Later) {
		err = cmp.Or(q.current(), err) // a change that no longer waits may have no worktree
	}
	if errors.Is(err, errElsewhere) {
		return scheduler.Decision{Verdict: scheduler.Elsewhere}, a.Showf("%s  was answered elsewhere\n", terminal.Printable(v.Task))
	}
	return decided, err
}

// watch ends the question when the change no longer waits for an answer.
func (q question) watch(ctx context.Context, over context.CancelCauseFunc) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := q.current(); err != nil {
				over(err)
			}
		}
	}
}

// current returns errElsewhere if the change no longer waits for an answer.
func (q question) current() error {
	current, err := control.IsCurrent(q.view)
	if err == nil && !current {
		err = errElsewhere
	}
	return err
}

// ask asks until there is an answer. asking ends when the question is answered elsewhere. A pager uses ctx,
// so that it is not interrupted.
func (q question) ask(ctx, asking context.Context) (scheduler.Decision, error) {
	if err := q.current(); err != nil {
		return scheduler.Decision{}, err
	}
	if err := q.printSummary(ctx); err != nil {
		return scheduler.Decision{}, err
	}
	for {
		key, err := q.app.choose(asking, terminal.Printable(q.view.Task), reviewOptions)
		if err != nil {
			return scheduler.Decision{}, err
		}
		decided, err := q.answer(asking, key)
		if err != nil {
			return scheduler.Decision{}, err
		}
		if decided != nil {
			return *decided, nil
		}
		if err := q.show(ctx, key); err != nil {
			return scheduler.Decision{}, err
		}
	}
}

// answer returns the decision that a key selects, or nil if there is none.
func (q question) answer(ctx context.Context, key string) (*scheduler.Decision, error) {
	switch key {
	case "a":
		accepted, err := q.acceptFindings(ctx)
		if err != nil || !accepted {
			return nil, err
		}
		return &scheduler.Decision{Verdict: scheduler.Approved}, q.app.Showf("%s  approved\n", terminal.Printable(q.view.Task))
	case "c":
		return q.reasoned(ctx, scheduler.Revised, "changes: ")
	case "r":
		return q.reasoned(ctx, scheduler.Rejected, "reason: ")
	case "", "l":
		return &scheduler.Decision{}, q.app.Showf("%s  left waiting\n  next: %s\n", terminal.Printable(q.view.Task), terminal.Printable(control.NextOf(q.view)))
	}
	return nil, nil
}

// reasoned asks for a text and returns a decision with it, or nil if the user goes back.
func (q question) reasoned(ctx context.Context, verdict scheduler.Verdict, label string) (*scheduler.Decision, error) {
	text, err := q.app.input(ctx, label)
	if err != nil || text == "" {
		return nil, err
	}
	return &scheduler.Decision{Verdict: verdict, Reason: text}, nil
}

// show prints the diff, the page or the explanation of the keys.
func (q question) show(ctx context.Context, key string) error {
	switch key {
	case "d", "v":
		r, err := q.app.Review(ctx, q.controller, q.view.Task)
		if err != nil {
			return err
		}
		text := reviewpage.Diff(r.Page.Diff.Patch, q.app.Color())
		if key == "v" {
			text = q.app.ReviewPage(r)
		}
		if gaveUp := q.app.shown.Alone(ctx, func() { err = q.app.Page(ctx, text) }); gaveUp != nil {
			return gaveUp
		}
		return err
	case "?":
		var b strings.Builder
		for _, o := range reviewOptions {
			fmt.Fprintf(&b, "  %s  %s\n", o.Key, o.Help)
		}
		return q.app.Showf("%s  Ctrl-C  stop: park running tasks and leave this change waiting\n", b.String())
	}
	return nil
}

// acceptFindings asks whether the user accepts the open error findings of a change, if there
// are any.
func (q question) acceptFindings(ctx context.Context) (bool, error) {
	open := q.view.Open
	if len(open) == 0 {
		return true, nil
	}
	if err := q.app.Showf("%s\n", terminal.FindingLines(open)); err != nil {
		return false, err
	}
	them := "these errors are"
	if len(open) == 1 {
		them = "this error is"
	}
	answer, err := q.app.choose(ctx, "Land it although "+them+" not fixed? Your name is recorded.", yesNo)
	return answer == "y", err
}

// fewFiles is the number of files that a question lists.
const fewFiles = 6

// printSummary prints a summary of the change.
func (q question) printSummary(ctx context.Context) error {
	v := q.view
	diff, err := q.controller.Diff(ctx, v.Task)
	if err != nil {
		return err
	}
	added, deleted, names := 0, 0, []string{}
	for _, f := range diff.Files {
		added, deleted, names = added+f.Added, deleted+f.Deleted, append(names, f.Path)
	}
	if more := len(names) - fewFiles; more > 0 {
		names = append(names[:fewFiles], fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("%s  %s%s\n  +%d -%d  %s\n", terminal.Printable(v.Task), terminal.Printable(oneline.Of(v.Info.Query)), terminal.Printable(terminal.Colon(v.Summary)), added, deleted,
		terminal.Printable(strings.Join(names, " ")))
	if open := findings.Summary(v.Open); open != "" {
		text += "  " + terminal.Printable(open) + "\n"
	}
	return q.app.Showf("%s", text)
}
