package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// conversation is a chat in one run of the command.
type conversation struct {
	*chatOptions
	controller *control.Controller
	view       session.View // zero before the first message
}

// once sends the message of the command line. It continues an interrupted turn first; if that is the turn
// of the same message, it does not send the message again.
func (t *conversation) once(ctx context.Context) error {
	cut, err := t.finish(ctx)
	if err == nil && cut != strings.TrimSpace(t.message) {
		err = t.turn(ctx, t.message)
	}
	if err != nil {
		return err
	}
	if control.TurnError(t.view) != nil { // it was shown
		return exit.Status(exit.Failed)
	}
	return nil
}

// finish continues an interrupted turn and returns its message, or "" if there is none.
func (t *conversation) finish(ctx context.Context) (string, error) {
	if t.view.Status != session.Interrupted {
		return "", nil
	}
	before := t.view
	message, err := t.controller.InterruptedMessage(before)
	if err != nil {
		return "", err
	}
	if message != "" { // otherwise there was no message yet
		if err := t.app.Showf("The turn that was interrupted continues: %s\n", terminal.Printable(shortened(message))); err != nil {
			return "", err
		}
	}
	outcome, err := t.controller.ContinueTurn(ctx, before)
	if before.Answer != "" { // it was recorded, and perhaps not shown
		if problem := t.app.Showf("%s", t.answered(before.Answer)); problem != nil {
			return "", problem
		}
	}
	return strings.TrimSpace(message), t.over(ctx, outcome, err)
}

// turn sends a message and returns when it is answered.
func (t *conversation) turn(ctx context.Context, text string) error {
	if t.view.ID == "" {
		outcome, err := t.controller.StartChat(ctx, text, t.options)
		return t.over(ctx, outcome, err)
	}
	outcome, err := t.controller.Say(ctx, t.view, text)
	return t.over(ctx, outcome, err)
}

// over loads the session after a turn. It returns an error, which ends the chat, unless the session waits
// for a message.
func (t *conversation) over(ctx context.Context, outcome control.Outcome, failed error) error {
	if outcome.Session == "" {
		return failed
	}
	view, err := t.controller.Project.SessionOf(context.WithoutCancel(ctx), outcome.Session)
	if err != nil {
		return err
	}
	t.view = view
	if failed != nil {
		return failed
	}
	if outcome.WaitsInChat(view.Info) {
		return nil
	}
	text := fmt.Sprintf("The chat stops here: it is %s", control.StateOf(view))
	if detail := control.DetailOf(view); detail != "" {
		text += ": " + detail
	}
	return &exit.Error{Exit: outcome.ExitCode(), Err: fmt.Errorf("%s", text), Next: control.NextOf(view)} //nolint:err113 // for a person
}

// talk sends the user's messages until the user leaves.
func (t *conversation) talk(ctx context.Context) error {
	defer t.app.OnInterrupt(t.controller.StopTurn)()
	if err := t.greet(ctx); err != nil {
		return err
	}
	typed := compose(ctx, t.app, openHistory(t.app, t.controller.Project), t.json || t.app.Keyboard == nil)
	defer typed.end()
	typed.busy.Store(true)
	if _, err := t.finish(ctx); err != nil {
		return err
	}
	for {
		typed.busy.Store(false)
		text, err := typed.next(ctx)
		if err != nil || text == "" {
			return err
		}
		typed.busy.Store(true)
		if err := t.app.Showf("%s", quoted(text)); err != nil {
			return err
		}
		if err := t.turn(ctx, text); err != nil {
			return err
		}
	}
}

// greet prints the keys, and the briefing for a new chat.
func (t *conversation) greet(ctx context.Context) error {
	if err := t.app.Showf(greeting); err != nil || t.view.ID != "" {
		return err
	}
	lines, err := t.controller.Brief(ctx, t.options.Onto)()
	if err != nil {
		return err
	}
	for _, line := range lines {
		if err := t.app.Showf("%s\n", terminal.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// end prints where the record of the chat is, and the commands that continue.
func (t *conversation) end(err error) error {
	if t.view.ID == "" || t.json {
		return err
	}
	text := fmt.Sprintf("Session: %s/%s\n", session.Dir, t.view.ID)
	if control.Refusal(control.OpChat, t.view) == nil {
		text += "  next: " + control.ChatCommand(t.view.ID) + "\n"
	}
	if control.WaitsForReview(t.view) {
		text += "  next: coven review " + terminal.Printable(t.view.Task) + "\n"
	}
	if problem := t.app.Printf("%s", text); err == nil {
		err = problem
	}
	return err
}

// maxQuoted is the number of lines that are shown of the user's own message.
const maxQuoted = 5

// quoted formats a message that the user has sent.
func quoted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	more := ""
	if n := len(lines) - maxQuoted; n > 1 {
		lines, more = lines[:maxQuoted], fmt.Sprintf("> … and %s\n", oneline.Count(n, "more line"))
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("> " + terminal.Printable(line) + "\n")
	}
	return b.String() + more
}

// shortened returns the beginning of a message in one line.
func shortened(text string) string { return terminal.Clip(oneline.Of(text), 60) }

// draw formats an event of a chat: the answers, the started agents and the warnings. The line of the
// running turn shows the rest.
func (o *chatOptions) draw(e event.Event) string {
	switch e.Type {
	case event.MessageCreated:
		if m := event.As[event.ChatMessage](e); m.Role == event.RoleAssistant {
			return o.answered(m.Text)
		}
	case event.StepCompleted:
		if r := event.As[event.Result](e); !r.OK && event.IsAnswer(e.Path) {
			return failedTurn(e, r)
		}
	case event.SpawnQueued, event.SpawnStarted, event.SpawnEnded, event.SpawnRejected, event.GateDecided, event.PermissionRequested,
		event.PermissionAnswered, event.AgentRetry, event.AgentStuck, event.LimitMet, event.LimitOver, event.RepositoryChanged, event.Warning:
		return terminal.Lines(e)
	}
	return ""
}

// answered formats an answer.
func (o *chatOptions) answered(text string) string {
	text = terminal.PrintableLines(strings.TrimSpace(text))
	if o.app.Color() {
		text = terminal.Markdown(text)
	}
	return text + "\n\n"
}

// failedTurn describes the failure of a turn.
func failedTurn(e event.Event, r event.Result) string {
	if r.ErrorType == event.ErrorCancelled {
		return "  ✗ " + terminal.Printable(r.Error) + "\n\n"
	}
	return terminal.Lines(e) + "\n"
}
