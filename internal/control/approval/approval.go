// Package approval finds the open questions of agents, and answers them. A question is about one tool call.
// It belongs to a session that another process of coven runs: the answer goes into the inbox of the
// session, on another machine as mail, and the first answer to a question counts.
package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// pollInterval is the interval at which Answer checks whether the answer was received.
const pollInterval = 50 * time.Millisecond

// Question is an open question.
type Question struct {
	Task    string           `json:"task"`
	Title   string           `json:"title"` // of the task
	Session string           `json:"session_id"`
	Chain   []string         `json:"parent_chain"` // from the user to the agent that asks
	Of      session.Approval `json:"question"`
	Machine string           `json:"machine,omitempty"` // that runs the session; empty for this one

	view session.View
}

// List returns all open questions, oldest first.
func List(p *project.Project) ([]Question, error) {
	views, err := control.CurrentSessions(p)
	if err != nil {
		return nil, err
	}
	all := []Question{}
	for _, v := range views {
		if v.Status == session.Running {
			all = append(all, questions(v)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Question) int { return a.Of.Asked.Compare(b.Of.Asked) })
	return all, nil
}

func questions(v session.View) (all []Question) {
	for _, open := range v.OpenApprovals() {
		chain := []string{"user", open.Agent}
		for _, s := range v.Subagents {
			if s.TraceID == open.TraceID && open.TraceID != "" {
				chain = s.ParentChain
			}
		}
		q := Question{Task: v.Task, Title: v.Info.Query, Session: v.ID, Chain: chain, Of: open, view: v}
		if v.Elsewhere() {
			q.Machine = v.Away.Machine
		}
		all = append(all, q)
	}
	return all
}

// Find returns the open question with number n, for a person who answers it; agents may not answer. If task
// is empty, only one task may have such a question.
func Find(p *project.Project, task string, n int) (Question, error) {
	if err := control.ByPerson(p); err != nil {
		return Question{}, err
	}
	all, err := List(p)
	if err != nil {
		return Question{}, err
	}
	found := slices.DeleteFunc(all, func(q Question) bool { return q.Of.N != n || task != "" && q.Task != task })
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Question{}, exit.Usagef("coven approvals list", "question %d is open in several tasks: name the task, too", n)
	}
	if was := answeredBefore(p, task, n); was != nil {
		return Question{}, was
	}
	return Question{}, exit.Failedf("coven approvals list", "no question %d waits for an answer", n)
}

// answeredBefore returns an *AnsweredError about the newest answered question with number n, or nil if
// there is none.
func answeredBefore(p *project.Project, task string, n int) error {
	views, err := control.CurrentSessions(p)
	if err != nil {
		return err
	}
	var last *AnsweredError
	var at time.Time
	for _, v := range views {
		for _, a := range v.Approvals {
			if a.N == n && !a.Open() && (task == "" || v.Task == task) && a.At.After(at) {
				last, at = &AnsweredError{Task: v.Task, N: n, Answer: *a.Answer}, a.At
			}
		}
	}
	if last == nil {
		return nil
	}
	return last
}

// AnsweredError reports that a question already has an answer.
type AnsweredError struct {
	Task   string
	N      int
	Answer event.ApprovalAnswer
}

// Error implements error. It names the person who answered.
func (e *AnsweredError) Error() string {
	text := fmt.Sprintf("question %d of %s is answered: %s", e.N, e.Task, e.Answer.Answer)
	if e.Answer.By != "" {
		text += " by " + e.Answer.By
	}
	return text
}

// NextCommand returns the command that lists the open questions.
func (e *AnsweredError) NextCommand() string { return "coven approvals list" }

// errGone reports that the agent no longer waits for the answer.
var errGone = errors.New("the agent no longer waits for an answer")

// Answer answers a question, and returns when the session has received the answer. The error is an
// *AnsweredError if another answer was first. If another machine runs the session, Answer returns when the answer is sent.
func Answer(ctx context.Context, p *project.Project, q Question, answer event.ApprovalAnswer) error {
	if q.view.Elsewhere() {
		if err := control.HideSecrets(p); err != nil {
			return err
		}
		return handover.Answer(ctx, p, q.view, q.Of, answer)
	}
	answer.N = q.Of.N
	file, err := session.Ask(p.Repo.Root, q.Session, session.Request{
		Kind: session.KindAnswer, By: p.Env.User(), Time: p.Env.Now(), Answer: &answer,
	})
	if err != nil {
		return err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		pending := session.Pending(file)
		v, err := session.Load(q.view.Dir)
		if err != nil {
			return err
		}
		for _, a := range v.Approvals {
			if a.N == q.Of.N && !a.Open() {
				session.Withdraw(file)
				if session.IsRequest(file, a.Answer.Request) {
					return nil
				}
				return &AnsweredError{Task: q.Task, N: q.Of.N, Answer: *a.Answer}
			}
		}
		if v.Status != session.Running && (!pending || session.Withdraw(file)) {
			return exit.Failedf("coven status", "question %d of %s: %w", q.Of.N, q.Task, errGone)
		}
		select {
		case <-ctx.Done():
			if session.Withdraw(file) {
				return fmt.Errorf("question %d of %s is not answered: %w", q.Of.N, q.Task, context.Cause(ctx))
			}
			ctx = context.WithoutCancel(ctx) // the session is receiving it
		case <-ticker.C:
		}
	}
}
