package control

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/snapshot"
)

// ChatCommand returns the command that continues a chat.
func ChatCommand(id string) string { return "coven chat --session " + shellword.Word(id) }

// NewChat prepares the Controller for chats, so that StopTurn can stop their turns.
func (c *Controller) NewChat() { c.stopTurn = make(chan struct{}, 1) }

// StopTurn stops the agent of the current turn of a chat. The chat goes on. It returns false if the turn is
// already being stopped.
func (c *Controller) StopTurn() bool {
	select {
	case c.stopTurn <- struct{}{}:
		return true
	default:
		return false
	}
}

// forgetStop discards a StopTurn that came after the end of the turn.
func (c *Controller) forgetStop() {
	select {
	case <-c.stopTurn:
	default:
	}
}

// StartChat starts a chat with its first message, and returns when the turn is over.
func (c *Controller) StartChat(ctx context.Context, text string, o Options) (Outcome, error) {
	return c.startChat(ctx, text, grimoires.Chat{Message: text}, o)
}

// CreateChat creates a chat without a first message.
func (c *Controller) CreateChat(ctx context.Context, title string, o Options) (Outcome, error) {
	return c.startChat(ctx, title, grimoires.Chat{}, o)
}

// ForkChat creates a chat from the messages of a session up to the given one, in a worktree with the files
// of that moment. It keeps the agent, provider and model of the session. See conversation.NewFork.
func (c *Controller) ForkChat(ctx context.Context, name, message string, o Options) (Outcome, error) {
	v, err := c.Project.SessionOf(ctx, name)
	if err != nil {
		return Outcome{}, err
	}
	state := func(ctx context.Context, commit string) (snapshot.Snapshot, error) {
		return snapshot.StateAt(ctx, c.Project.Repo, commit)
	}
	f, err := conversation.NewFork(ctx, state, v, message)
	if err != nil {
		return Outcome{}, err
	}
	if f.Gap != "" {
		c.notify(Notice{Text: f.Gap})
	}
	o.Agent, o.Provider, o.Model, o.Onto, o.Base, o.fork = f.Agent, v.Info.Provider, v.Info.Model, v.Info.Target, f.Base, f
	return c.startChat(ctx, v.Info.Query, grimoires.Chat{Conversation: f.Conversation}, o)
}

func (c *Controller) startChat(ctx context.Context, title string, chat grimoires.Chat, o Options) (Outcome, error) {
	item, err := c.Project.AdHoc(ctx, title)
	if err != nil {
		return Outcome{}, err
	}
	target, err := c.Project.Repo.Target(ctx, o.Onto)
	if err != nil {
		return Outcome{}, err
	}
	o.Grimoire, o.chat = "", &chat
	c.forgetStop()
	return c.beginNew(ctx, item, target, o)
}

// Chat returns a session if it is a chat that can continue, and an error otherwise.
func (c *Controller) Chat(ctx context.Context, name string) (session.View, error) {
	v, err := c.Project.SessionOf(ctx, name)
	if err != nil {
		return v, err
	}
	return v, Refusal(OpChat, v)
}

// InterruptedMessage returns the message whose turn was interrupted. It is empty if no turn was.
func (c *Controller) InterruptedMessage(v session.View) (string, error) {
	if v.Status != session.Interrupted || v.Said != "" {
		return v.Said, nil
	}
	plan, err := project.PlanOf(v.Dir) // the message is recorded when its turn starts
	if err != nil || plan.Chat == nil {
		return "", err
	}
	return plan.Chat.Message, nil
}

// Say records the next message of a chat, and returns when its turn is over. The chat must not have an
// interrupted turn.
func (c *Controller) Say(ctx context.Context, v session.View, text string) (Outcome, error) {
	err := Refusal(OpChat, v)
	if err == nil && len(text) > task.MaxText {
		err = exit.Usagef("put the text into a file and name the file in the message", "the message has %d bytes, the maximum is %d", len(text), task.MaxText)
	}
	if err == nil && v.Status != session.Waiting {
		err = &ChangedError{Task: v.Task, State: StateOf(v)}
	}
	if err == nil {
		err = c.admitSession(ctx, v)
	}
	if err == nil {
		err = c.preflightSession(ctx, v)
	}
	if err == nil {
		err = c.checkSandbox(ctx, resumeUnsandboxed)
	}
	if err == nil {
		err = c.recordMessage(v, text)
	}
	if err != nil {
		return Outcome{}, err
	}
	return c.ContinueTurn(ctx, v)
}

func (c *Controller) recordMessage(v session.View, text string) error {
	s, err := c.openForWriting(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	s.Hide(c.Runtime.secrets)
	return s.Append(event.Event{Type: event.MessageCreated, Path: v.WaitsAt}, event.ChatMessage{
		ID: uuid.NewString(), Role: event.RoleUser, Text: text, By: c.Project.Env.User(),
	})
}

// ContinueTurn continues a turn of a chat that was interrupted or has not begun, and returns when it is
// over.
func (c *Controller) ContinueTurn(ctx context.Context, v session.View) (Outcome, error) {
	v, err := session.Load(v.Dir)
	if err == nil {
		err = c.admitSession(ctx, v)
	}
	if err != nil {
		return Outcome{}, err
	}
	c.forgetStop()
	return c.resume(ctx, v, budget.Amount{}, Switch{})
}

// chatRefusal returns the reason that a session cannot continue as a chat, or nil.
func chatRefusal(refused *StateError, v session.View) error {
	id := shellword.Word(v.Task)
	switch shown := v.Shown(); {
	case v.Status == session.Running && v.Info.Chat:
		return Busy(v, "coven attach "+id)
	case !v.Info.Chat:
		return exit.Failedf("coven why "+id, "session %s is no chat: its task %s is %s", v.ID, v.Task, StateOf(v))
	case shown.Status == session.Damaged:
		refused.Code, refused.Next, refused.Detail = exit.Person, NextOf(v), v.Damage
	case !v.Live():
		refused.Next, refused.Detail = "coven chat", "the chat is over"
	case WaitsForReview(v), WaitsForMessage(v), v.Status == session.Interrupted:
		return nil
	default:
		refused.Code, refused.Next, refused.Detail = exit.Person, cmp.Or(NextOf(v), "coven why "+id), DetailOf(v)
	}
	return refused
}

// TurnError returns the error of the last turn of a chat, or nil if the turn has an answer.
func TurnError(v session.View) error {
	for i := len(v.Steps) - 1; i >= 0; i-- {
		step := v.Steps[i]
		if event.IsAnswer(step.Path) && step.Status == session.Failed {
			return fmt.Errorf("the turn failed: %s", step.Error)
		}
		if event.IsAnswer(step.Path) {
			break
		}
	}
	return nil
}
