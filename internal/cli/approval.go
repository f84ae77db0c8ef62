package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/approval"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/terminal"
)

// approvalOptions are the answers to the question of an agent. The prompt names the first three.
var approvalOptions = []terminal.Option{
	{Key: "a", Word: "approve", Help: "let the call happen"},
	{Key: "d", Word: "deny", Help: "refuse it, and tell the agent why"},
	{Key: "m", Word: "modify", Help: "let it happen with other parameters"},
	{Key: "s", Word: "session", Help: "let it happen, and do not ask about the same again in this session"},
	{Key: "c", Word: "context", Help: "show all parameters, and why you are asked"},
	{Key: "l", Word: "later", Help: "answer with coven approvals, or not at all"},
	{Key: "?", Help: "explain the keys"},
}

// approvals holds the open questions of agents at this terminal.
type approvals struct {
	mu   sync.Mutex
	open map[string]context.CancelCauseFunc
	all  sync.WaitGroup
}

func approvalKey(e event.Event, n int) string { return fmt.Sprintf("%s %d", e.Session, n) }

// close ends all questions.
func (q *approvals) close() {
	q.mu.Lock()
	for _, end := range q.open {
		end(errElsewhere)
	}
	q.mu.Unlock()
	q.all.Wait()
}

// begin returns the context of a question.
func (q *approvals) begin(key string) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]context.CancelCauseFunc{}
	}
	q.open[key] = cancel
	return ctx
}

// end ends a question that has been answered.
func (q *approvals) end(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.open[key]; cancel != nil {
		cancel(errElsewhere)
		delete(q.open, key)
	}
}

// seeing returns a function that shows the events of sessions. On a terminal, it also asks the user for the
// approvals that agents need.
func (a *App) seeing(c *control.Controller, asJSON bool) func(event.Event) {
	if !a.Interactive || asJSON {
		return func(e event.Event) {
			a.shown.See(e)
			a.notices.see(e)
		}
	}
	return func(e event.Event) {
		a.shown.See(e)
		a.notices.see(e)
		switch e.Type {
		case event.PermissionRequested:
			n := event.As[event.Approval](e).N
			ctx := a.approvals.begin(approvalKey(e, n))
			a.approvals.all.Go(func() {
				if err := a.askApproval(ctx, c, e.Task, n); err != nil && !errors.Is(err, errElsewhere) {
					_ = a.Showf("%s  %s\n", terminal.Printable(e.Task), terminal.Printable(err.Error())) // coven approvals can still answer
				}
			})
		case event.PermissionAnswered:
			a.approvals.end(approvalKey(e, event.As[event.ApprovalAnswer](e).N))
		}
	}
}

// askApproval asks the user about a call until there is an answer.
func (a *App) askApproval(ctx context.Context, c *control.Controller, task string, n int) error {
	q, err := approval.Find(c.Project, task, n)
	if err != nil {
		return err
	}
	if err := a.Showf("%s  %s\n%s", terminal.Printable(q.Task), terminal.Clip(q.Title, 80), terminal.Approval(q.Of.Approval)); err != nil {
		return err
	}
	for {
		key, err := a.chooseBy(ctx, &terminal.Choice{Options: approvalOptions, Labels: "[A]pprove / [D]eny / [M]odify parameters?"})
		if err != nil {
			return err
		}
		if key == "" || key == "l" {
			return a.Showf("%s  left waiting\n  next: coven approvals list\n", terminal.Printable(task))
		}
		answer, err := a.approvalAnswer(ctx, q, key)
		if err != nil {
			return err
		}
		if answer != nil {
			return approval.Answer(context.WithoutCancel(ctx), c.Project, q, *answer)
		}
	}
}

// approvalAnswer returns the answer that a key selects, or nil if there is none yet.
func (a *App) approvalAnswer(ctx context.Context, q approval.Question, key string) (*event.ApprovalAnswer, error) {
	switch key {
	case "a", "s":
		sure, err := a.sure(ctx, q)
		if err != nil || !sure {
			return nil, err
		}
		return &event.ApprovalAnswer{Answer: event.Approved, Session: key == "s"}, nil
	case "d":
		reason, err := a.input(ctx, "reason: ")
		if err != nil || reason == "" {
			return nil, err
		}
		return &event.ApprovalAnswer{Answer: event.Denied, Reason: reason}, nil
	case "m":
		text, err := a.input(ctx, "parameters as JSON: ")
		var object map[string]any
		switch {
		case err != nil || text == "":
			return nil, err
		case json.Unmarshal([]byte(text), &object) != nil || object == nil:
			return nil, a.Showf("this is not a JSON object\n")
		}
		return &event.ApprovalAnswer{Answer: event.Modified, Modified: &event.Modification{After: json.RawMessage(text)}}, nil
	case "c":
		return nil, a.Showf("%s\nWhy: %s\n", terminal.PrintableLines(string(q.Of.Input)), terminal.Printable(q.Of.Reason))
	}
	var text string
	for _, o := range approvalOptions {
		text += fmt.Sprintf("  %s  %s\n", o.Key, o.Help)
	}
	return nil, a.Showf("%s", text)
}

// sure asks for confirmation of a call that cannot be undone.
func (a *App) sure(ctx context.Context, q approval.Question) (bool, error) {
	if q.Of.Reversible {
		return true, nil
	}
	text, err := a.input(ctx, "This cannot be undone. Type yes to approve it: ")
	return text == "yes", err
}
