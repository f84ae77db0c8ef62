package control

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ReviseRequest asks for changes to the change of a task.
type ReviseRequest struct {
	Task string
	Seen session.View // as in ApproveRequest
	// Comments describe the changes. A comment that begins with FILE:LINE: is about that line.
	Comments []string
}

// Revise records a person's comments as findings and resumes the session: the agent makes the changes in
// its conversation, the steps after its work run again, and the session asks for another review. If the session is blocked
// because its agent failed, the comments are messages to that agent, which goes on.
func (c *Controller) Revise(ctx context.Context, r ReviseRequest) (Outcome, error) {
	changes := changesOf(r.Comments)
	if len(changes) == 0 {
		return Outcome{}, exit.Usagef("coven revise "+shellword.Word(r.Task)+` -m "what to change"`, "a comment is required: it tells the agent what to change")
	}
	v, err := c.sessionOf(ctx, r.Task, r.Seen)
	if err == nil {
		err = Refusal(OpRevise, v)
	}
	if err == nil {
		err = c.checkSession(v)
	}
	if err == nil {
		err = c.preflightSession(ctx, v)
	}
	if err != nil {
		return Outcome{}, err // nothing is recorded
	}
	if v.Status == session.Blocked && failedAt(v).Kind == "agent" {
		if _, err := c.Send(v, strings.Join(r.Comments, "\n\n")); err != nil {
			return Outcome{}, err
		}
		return c.resume(ctx, v, budget.Amount{}, Switch{})
	}
	answer := event.MergeDecision{By: c.Project.Env.User(), Changes: changes}
	if v.Review != nil {
		answer.Patch = v.Review.Patch
	}
	return c.answer(ctx, v, answer)
}

// failedAt returns the step that failed in a blocked session. If the failure is that of a loop, its Kind is empty.
func failedAt(v session.View) session.Step {
	for _, s := range slices.Backward(v.Steps) {
		if s.Path == v.Failing {
			return s
		}
	}
	return session.Step{}
}

// aboutLine matches a comment about a line: FILE:LINE: TEXT, where the second colon may be
// missing.
var aboutLine = lazyregexp.New(`^([^\s:]+):([1-9]\d{0,8}):?(\s+|$)`)

// changesOf returns the findings of comments that are not blank.
func changesOf(comments []string) []reviewer.Finding {
	var changes []reviewer.Finding
	for _, text := range comments {
		f := reviewer.Finding{Severity: reviewer.Error, Message: strings.TrimSpace(text)}
		if m := aboutLine.FindStringSubmatch(f.Message); m != nil {
			f.File, f.Message = m[1], strings.TrimSpace(f.Message[len(m[0]):])
			f.Line, _ = strconv.Atoi(m[2]) // at most nine digits
		}
		if f.Message != "" {
			changes = append(changes, f)
		}
	}
	return changes
}
