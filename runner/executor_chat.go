package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner/agentresult"
	"github.com/coven-run/coven/runner/engine"
)

// errTurnStopped is the cause of stopping an agent during a turn of a chat.
var errTurnStopped = errors.New("stopped by you")

// answer runs the agent leaf of a turn: the agent answers a message, and its changes are committed. A turn
// that failed or was stopped does not end the chat.
func (x *Executor) answer(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if err := x.recordFirst(c); err != nil {
		return event.Result{}, err
	}
	turn, done := x.stoppable(ctx)
	report, err := x.report(turn, c, b)
	if stopped := errors.Is(context.Cause(turn), errTurnStopped); stopped && err != nil && ctx.Err() == nil {
		report, err = driver.Report{Kind: event.ErrorCancelled, Error: errTurnStopped.Error()}, nil
	}
	done()
	if err != nil {
		return event.Result{}, err
	}
	result := event.Result{Agent: cmp.Or(c.Agent.Agent, grimoires.DefaultAgent), Output: report.Text, Usage: report.Result.Usage}
	if result.Error, result.ErrorType = report.Error, report.Kind; report.Kind == driver.None {
		result.Error, result.Summary = "", agentresult.SummaryOf(report.Text)
	}
	if err := x.recordAnswer(c, b, result); err != nil {
		return event.Result{}, err
	}
	if result.Error != "" {
		return x.commitUnfinished(ctx, result)
	}
	return x.commit(ctx, c, b, result, "")
}

// stoppable returns a context that ends with errTurnStopped when the user stops the turn.
func (x *Executor) stoppable(ctx context.Context) (turn context.Context, done func()) {
	turn, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-x.StopTurn:
			cancel(errTurnStopped)
		case <-turn.Done():
		}
	}()
	return turn, func() { cancel(nil) }
}

// recordFirst records the first message of a chat. Later messages are recorded before their turns.
func (x *Executor) recordFirst(c engine.Call) error {
	if c.Agent.Continues != "" || x.Journal.has(event.MessageCreated) {
		return nil
	}
	return x.emit(event.MessageCreated, c.Path, event.ChatMessage{ID: uuid.NewString(), Role: event.RoleUser, Text: c.Agent.Prompt})
}

// recordAnswer records the agent's answer, once.
func (x *Executor) recordAnswer(c engine.Call, b leafStart, r event.Result) error {
	if last, ok := x.Journal.lastAt(c.Path, event.MessageCreated); r.Output == "" || ok && last.Seq > b.since && event.As[event.ChatMessage](last).Role == event.RoleAssistant {
		return nil
	}
	return x.emit(event.MessageCreated, c.Path, event.ChatMessage{ID: uuid.NewString(), Role: event.RoleAssistant, Text: r.Output, By: r.Agent})
}

// chatReply returns a person's message at the merge step of a turn. ok is false if the change is approved.
// Otherwise the error is a *Wait.
func (x *Executor) chatReply(ctx context.Context, c engine.Call) (result event.Result, ok bool, err error) {
	last, found := x.Journal.lastAt(c.Path, event.MessageCreated, event.ReviewAsked, event.ReviewAnswered)
	if found && last.Type == event.MessageCreated {
		m := event.As[event.ChatMessage](last)
		return event.Result{Error: m.By + " wrote", ErrorType: event.ErrorRevise, Output: m.Text}, true, nil
	}
	if found && last.Type == event.ReviewAnswered && event.As[event.MergeDecision](last).Approved {
		return event.Result{}, false, nil
	}
	_, patch, err := x.Reviewers.Change(ctx)
	if err != nil {
		return event.Result{}, false, err
	}
	if patch == "" {
		return event.Result{}, false, &Wait{Reason: event.WaitMessage, Detail: waitDetail(c, "nothing is changed"), Command: "coven chat --session " + shellword.Word(x.Session)}
	}
	if asked := event.As[event.MergeDecision](last); last.Type != event.ReviewAsked || asked.Patch != patch {
		tree, err := x.Workspace.Tree(ctx)
		if err != nil {
			return event.Result{}, false, err
		}
		question := event.MergeDecision{Patch: patch, Tree: tree, Message: x.landingMessage(c)}
		if err := x.emit(event.ReviewAsked, c.Path, question); err != nil {
			return event.Result{}, false, err
		}
	}
	return event.Result{}, false, &Wait{Reason: event.WaitReview, Next: "approve", Detail: waitDetail(c, forApproval)}
}

// waitDetail returns the reason why a chat waits.
func waitDetail(c engine.Call, otherwise string) string {
	if c.Merge.Failed != "" {
		return "not landed: " + oneline.Of(c.Merge.Failed)
	}
	return otherwise
}

// retoldHeading introduces the earlier messages of a chat for an agent that does not know them.
const retoldHeading = "# The conversation so far\n\nYou do not remember it, and nothing it did was undone.\n"

// maxRetold limits each retold message, in bytes.
const maxRetold = 4 << 10

// earlierMessages returns the messages of earlier turns, for a new conversation.
func (x *Executor) earlierMessages(c engine.Call) string {
	if c.Agent.Continues == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(retoldHeading)
	said := x.Journal.All(event.MessageCreated)
	for i, e := range said {
		m := event.As[event.ChatMessage](e)
		if m.Role == event.RoleUser && i == len(said)-1 {
			break // the message of this turn
		}
		text := m.Text
		if len(text) > maxRetold {
			text = strings.ToValidUTF8(text[:maxRetold], "") + "…"
		}
		b.WriteString("\n## " + m.Role + "\n\n" + strings.TrimSpace(text) + "\n")
	}
	return b.String() + "\n# The message to answer\n\n"
}
