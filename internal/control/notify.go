package control

import (
	"context"

	"github.com/coven-run/coven/internal/control/hooks"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
)

// notifyEnded runs the user's notify commands after a session has stopped, also after an
// interrupt.
func (c *Controller) notifyEnded(ctx context.Context, item project.Item, o Outcome) {
	c.runHooks(ctx, hooks.Notification{
		Task: item.Task.ID, Title: item.Task.Title, State: string(o.Status), Reason: string(o.Reason), Detail: oneline.Of(o.Detail),
		Next: o.Next, Session: o.Session, Commit: o.Commit,
	})
}

// notifyAsked runs the user's notify commands when an agent asks for an approval.
func (c *Controller) notifyAsked(ctx context.Context, item project.Item, id string, q event.Approval) {
	c.runHooks(ctx, hooks.Notification{
		Task: item.Task.ID, Title: item.Task.Title, State: string(session.Waiting), Reason: string(event.WaitApproval), Session: id,
		Detail: oneline.Of(q.Agent + " asks for approval: " + q.Tool + " " + q.Subject), Next: "coven approvals list",
	})
}

// runHooks tells the user's programs about a session.
func (c *Controller) runHooks(ctx context.Context, n hooks.Notification) {
	for _, warning := range hooks.Run(ctx, c.Project, n) {
		c.notify(Notice{Task: n.Task, Text: warning})
	}
}
