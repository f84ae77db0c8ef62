package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/scheduler"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// Question asks the user about a change, between the lines of running tasks.
func (a *App) Question(ctx context.Context, c *control.Controller, v session.View) (decided scheduler.Decision, err error) {
	if gaveUp := a.shown.Alone(ctx, func() { decided, err = a.askReview(ctx, c, v) }); gaveUp != nil {
		return scheduler.Decision{}, gaveUp
	}
	return decided, err
}

// askReview asks until there is an answer. Nothing else may use the terminal meanwhile.
func (a *App) askReview(ctx context.Context, c *control.Controller, v session.View) (scheduler.Decision, error) {
	if current, err := control.IsCurrent(v); err != nil || !current {
		return scheduler.Decision{Verdict: scheduler.Elsewhere}, err
	}
	if err := a.introduce(ctx, c, v); err != nil {
		return scheduler.Decision{}, err
	}
	for {
		answer, err := a.Ask(ctx, terminal.Printable(v.Task)+"  [a]pprove [d]iff [r]eject [l]ater ")
		if err != nil {
			return scheduler.Decision{}, err
		}
		switch answer {
		case "a", "approve":
			accepted, err := a.acceptFindings(ctx, v)
			if err != nil || accepted {
				return scheduler.Decision{Verdict: scheduler.Approved}, err
			}
		case "d", "diff":
			if err := a.PrintDiff(ctx, c, v.Task, false); err != nil {
				return scheduler.Decision{}, err
			}
		case "r", "reject":
			reason, err := a.askReason(ctx)
			if err != nil || reason != "" {
				return scheduler.Decision{Verdict: scheduler.Rejected, Reason: reason}, err
			}
		case "", "l", "later":
			return scheduler.Decision{}, a.Printf("left waiting\n  next: %s\n", terminal.Printable(control.NextOf(v)))
		default:
			if err := a.Printf("%q is not a valid answer\n", answer); err != nil {
				return scheduler.Decision{}, err
			}
		}
	}
}

// askReason asks why a change is rejected. The reason may be empty.
func (a *App) askReason(ctx context.Context) (string, error) {
	reason, err := a.Ask(ctx, "reason: ")
	if err == nil && reason == "" {
		err = a.Printf("a reason is required\n")
	}
	return reason, err
}

// acceptFindings asks whether the user accepts the open error findings of a change, if there
// are any.
func (a *App) acceptFindings(ctx context.Context, v session.View) (bool, error) {
	if len(v.Open) == 0 {
		return true, nil
	}
	if err := a.Printf("%s\n", control.OpenLines(v.Open)); err != nil {
		return false, err
	}
	them := "these errors are"
	if len(v.Open) == 1 {
		them = "this error is"
	}
	answer, err := a.Ask(ctx, "Land it although "+them+" not fixed? Your name is recorded. [y]es [n]o ")
	return answer == "y" || answer == "yes", err
}

// fewFiles is how many files of a change a question lists.
const fewFiles = 6

// introduce prints what a question is about.
func (a *App) introduce(ctx context.Context, c *control.Controller, v session.View) error {
	diff, err := c.Diff(ctx, v.Task)
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
	return a.Printf("%s", text)
}
