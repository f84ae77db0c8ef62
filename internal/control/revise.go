package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ReviseRequest asks for changes to the change of a task.
type ReviseRequest struct {
	Task string
	Seen session.View // as in ApproveRequest
	// Comments describe the changes. A comment that begins with FILE:LINE: is about that line.
	Comments []string
	Drafts   []Draft // of the person's review
	Tree     string  // that the person saw; empty if unknown
}

// Draft is a comment of a person's review, which the agent answers by its ID.
type Draft struct {
	ID     string
	Remote string // its ID on the host of the pull request, which gets the answer; empty for a comment of this machine
	reviewer.Finding
}

// Revise records a person's comments as findings and resumes the session: the agent makes the changes in
// its conversation, the steps after its work run again, and the session asks for another review. If the session is blocked
// because its agent failed, the comments are messages to that agent, which goes on.
func (c *Controller) Revise(ctx context.Context, r ReviseRequest) (Outcome, error) {
	answer := event.MergeDecision{By: c.Project.Env.User(), Tree: r.Tree}
	for _, d := range r.Drafts {
		answer.Changes, answer.Comments = append(answer.Changes, d.Finding), append(answer.Comments, d.ID)
		answer.Remote = append(answer.Remote, d.Remote)
	}
	answer.Changes = append(answer.Changes, findings.OfComments(r.Comments)...)
	if len(answer.Changes) == 0 {
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
		if len(r.Drafts) > 0 {
			return Outcome{}, exit.Failedf("coven resume "+shellword.Word(v.Task), "the agent of %s failed and has no change to comment on yet: resume the task first; the comments stay drafts", v.Task)
		}
		if _, err := c.Send(v, strings.Join(r.Comments, "\n\n")); err != nil {
			return Outcome{}, err
		}
		return c.resume(ctx, v, budget.Amount{}, Switch{})
	}
	if v.Review != nil {
		answer.Patch, answer.Tree = v.Review.Patch, cmp.Or(r.Tree, v.Review.Tree)
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
