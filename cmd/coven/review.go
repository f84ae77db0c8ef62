package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// question asks a person about a change, between the lines of the tasks at work.
func (a *app) question(ctx context.Context, d *desk, v session.View) (decided decision, err error) {
	if gaveUp := a.shown.Alone(ctx, func() { decided, err = a.askReview(ctx, d, v) }); gaveUp != nil {
		return decision{}, gaveUp
	}
	return decided, err
}

// askReview asks until there is an answer. It has the terminal for itself.
func (a *app) askReview(ctx context.Context, d *desk, v session.View) (decision, error) {
	if now, err := session.Load(v.Dir); err != nil || !now.Same(v) {
		return decision{verdict: elsewhere}, err
	}
	if err := a.introduce(ctx, d, v); err != nil {
		return decision{}, err
	}
	for {
		answer, err := a.ask(ctx, terminal.Printable(v.Task)+"  [a]pprove [d]iff [r]eject [l]ater ")
		if err != nil {
			return decision{}, err
		}
		switch answer {
		case "a", "approve":
			accepted, err := a.acceptFindings(ctx, v)
			if err != nil || accepted {
				return decision{verdict: approved}, err
			}
		case "d", "diff":
			if err := a.printDiff(ctx, d, v.Task, false); err != nil {
				return decision{}, err
			}
		case "r", "reject":
			reason, err := a.askReason(ctx)
			if err != nil || reason != "" {
				return decision{verdict: rejected, reason: reason}, err
			}
		case "", "l", "later":
			return decision{}, a.say("it waits\n  next: %s\n", terminal.Printable(nextOf(v)))
		default:
			if err := a.say("%q is no answer here\n", answer); err != nil {
				return decision{}, err
			}
		}
	}
}

// askReason asks why a change is rejected. It is empty when nothing was said.
func (a *app) askReason(ctx context.Context) (string, error) {
	reason, err := a.ask(ctx, "reason: ")
	if err == nil && reason == "" {
		err = a.say("a rejection needs a reason\n")
	}
	return reason, err
}

// acceptFindings asks whether a person accepts the open error findings of a change;
// without any it does not ask.
func (a *app) acceptFindings(ctx context.Context, v session.View) (bool, error) {
	if len(v.Open) == 0 {
		return true, nil
	}
	if err := a.say("%s\n", openLines(v.Open)); err != nil {
		return false, err
	}
	them := "these errors are"
	if len(v.Open) == 1 {
		them = "this error is"
	}
	answer, err := a.ask(ctx, "Land it although "+them+" not fixed? Your name goes on record. [y]es [n]o ")
	return answer == "y" || answer == "yes", err
}

// fewFiles is how many files of a change a question names.
const fewFiles = 6

// introduce says what a question is about.
func (a *app) introduce(ctx context.Context, d *desk, v session.View) error {
	_, diff, err := d.changeOf(ctx, v)
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
	return a.say("%s", text)
}
