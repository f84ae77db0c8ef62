package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Message is a message to the agent of a session that another coven runs.
type Message struct {
	Text string
	file string // in the inbox until an agent acknowledges the message
}

// Pending reports whether no agent has acknowledged the message yet.
func (m Message) Pending() bool { return session.Pending(m.file) }

// Withdraw takes the message back. It returns false if an agent has acknowledged it.
func (m Message) Withdraw() bool { return session.Withdraw(m.file) }

// Attach returns the session of a task, or an error unless it is running.
func (c *Controller) Attach(ctx context.Context, task string) (session.View, error) {
	v, err := c.Project.Find(ctx, task)
	if err != nil {
		return v, err
	}
	return v, Refusal(OpMessage, v)
}

// Send puts a message into the inbox of a session and does not wait for its agent. A
// message that is not withdrawn waits for the next agent of the session.
func (c *Controller) Send(v session.View, text string) (Message, error) {
	if strings.TrimSpace(text) == "" {
		return Message{}, exit.Usagef("", "the message is empty")
	}
	file, err := session.Ask(c.Project.Repo.Root, v.ID, session.Request{
		Kind: session.KindMessage, Text: text, By: c.Project.Env.User(), Time: c.Project.Env.Now(),
	})
	return Message{Text: text, file: file}, err
}

// Deliver sends a message to the agent that works on a task and returns when the agent has
// acknowledged it. If the session stops before that, Deliver withdraws the message and fails.
func (c *Controller) Deliver(ctx context.Context, task, text string) error {
	v, err := c.Attach(ctx, task)
	if err != nil {
		return err
	}
	m, err := c.Send(v, text)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(launch.PollInterval)
	defer ticker.Stop()
	for {
		now, err := session.Load(v.Dir)
		if err != nil {
			return err
		}
		if !m.Pending() {
			return nil
		}
		if now.Status != session.Running && m.Withdraw() {
			return exit.Failedf("coven why "+shellword.Word(v.Task), "the agent did not get the message: task %s is %s", v.Task, StateOf(now))
		}
		select {
		case <-ctx.Done():
			if m.Withdraw() {
				return fmt.Errorf("the agent did not get the message: %w", context.Cause(ctx))
			}
		case <-ticker.C:
		}
	}
}
