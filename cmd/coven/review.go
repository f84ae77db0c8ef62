package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// decision is what a person says about a change that is ready.
type decision struct {
	verdict verdict
	reason  string // of a rejection
}

type verdict int

// The verdicts.
const (
	later verdict = iota
	approved
	rejected
	elsewhere // somebody has answered, or the session goes on
)

// question asks a person about a change, between the lines of the tasks at work.
func (d *desk) question(ctx context.Context, v session.View) (decided decision, err error) {
	if gaveUp := d.screen.Alone(ctx, func() { decided, err = d.askReview(ctx, v) }); gaveUp != nil {
		return decision{}, gaveUp
	}
	return decided, err
}

// askReview asks until there is an answer. It has the terminal for itself.
func (d *desk) askReview(ctx context.Context, v session.View) (decision, error) {
	if now, err := session.Load(v.Dir); err != nil || !now.Same(v) {
		return decision{verdict: elsewhere}, err
	}
	if err := d.introduce(ctx, v); err != nil {
		return decision{}, err
	}
	for {
		answer, err := d.app().ask(ctx, printable(v.Task)+"  [a]pprove [d]iff [r]eject [l]ater ")
		if err != nil {
			return decision{}, err
		}
		switch answer {
		case "a", "approve":
			accepted, err := d.acceptFindings(ctx, v)
			if err != nil || accepted {
				return decision{verdict: approved}, err
			}
		case "d", "diff":
			if err := d.printDiff(ctx, v.Task, false); err != nil {
				return decision{}, err
			}
		case "r", "reject":
			reason, err := d.askReason(ctx)
			if err != nil || reason != "" {
				return decision{verdict: rejected, reason: reason}, err
			}
		case "", "l", "later":
			return decision{}, d.app().say("it waits\n  next: %s\n", printable(nextOf(v)))
		default:
			if err := d.app().say("%q is no answer here\n", answer); err != nil {
				return decision{}, err
			}
		}
	}
}

// askReason asks why a change is rejected. It is empty when nothing was said.
func (d *desk) askReason(ctx context.Context) (string, error) {
	reason, err := d.app().ask(ctx, "reason: ")
	if err == nil && reason == "" {
		err = d.app().say("a rejection needs a reason\n")
	}
	return reason, err
}

// acceptFindings asks whether a person accepts the open error findings of a change;
// without any it does not ask.
func (d *desk) acceptFindings(ctx context.Context, v session.View) (bool, error) {
	if len(v.Open) == 0 {
		return true, nil
	}
	if err := d.app().say("%s\n", openLines(v.Open)); err != nil {
		return false, err
	}
	them := "these errors are"
	if len(v.Open) == 1 {
		them = "this error is"
	}
	answer, err := d.app().ask(ctx, "Land it although "+them+" not fixed? Your name goes on record. [y]es [n]o ")
	return answer == "y" || answer == "yes", err
}

// fewFiles is how many files of a change a question names.
const fewFiles = 6

// introduce says what a question is about.
func (d *desk) introduce(ctx context.Context, v session.View) error {
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
	text := fmt.Sprintf("%s  %s%s\n  +%d -%d  %s\n", printable(v.Task), printable(oneLine(v.Info.Query)), printable(colon(v.Summary)), added, deleted,
		printable(strings.Join(names, " ")))
	if open := findings.Summary(v.Open); open != "" {
		text += "  " + printable(open) + "\n"
	}
	return d.app().say("%s", text)
}

// approveNow records a person's approval of a patch that v waits with, and of v's
// open error findings, and resumes the session. Another patch than that is asked
// about again.
func (d *desk) approveNow(ctx context.Context, v session.View, patch string) (runner.Outcome, error) {
	needs, err := needsOfSession(v.Dir)
	if err == nil {
		err = d.house.mayRun(needs)
	}
	if err != nil {
		return runner.Outcome{}, err // before anything is on record
	}
	if err := d.answer(v, event.MergeDecision{Patch: patch, Approved: true, By: d.app().user(), Accepted: v.Open}); err != nil {
		return runner.Outcome{}, err
	}
	v, err = session.Load(v.Dir)
	if err != nil {
		return runner.Outcome{}, err
	}
	return d.resume(ctx, v, budget.Amount{})
}

// answer records a person's answer to the question that v waits with.
func (d *desk) answer(v session.View, r event.MergeDecision) error {
	if v.Review == nil {
		return fmt.Errorf("session %s asked no question", v.ID)
	}
	s, err := d.take(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	return s.Append(event.Event{Type: event.ReviewAnswered, Path: v.Review.Path}, r)
}

// user is the name under which a person's decisions are on record.
func (a *app) user() string {
	if name := a.getenv("USER"); name != "" {
		return name
	}
	return "a person"
}
