package control

import (
	"context"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/telemetry/notify"
	"github.com/coven-run/coven/internal/text/oneline"
)

// notifyEnded runs the user's notify commands after a session has stopped, also after an
// interrupt.
func (c *Controller) notifyEnded(ctx context.Context, item project.Item, o Outcome) {
	c.runHooks(ctx, notify.Notification{
		Task: item.Task.ID, Title: item.Task.Title, State: string(o.Status), Reason: string(o.Reason), Detail: oneline.Of(o.Detail),
		Next: o.Next, Session: o.Session, Commit: o.Commit,
	})
}

// notifyAsked runs the user's notify commands when an agent asks for an approval.
func (c *Controller) notifyAsked(ctx context.Context, item project.Item, id string, q event.Approval) {
	c.runHooks(ctx, notify.Notification{
		Task: item.Task.ID, Title: item.Task.Title, State: string(session.Waiting), Reason: string(event.WaitApproval), Session: id,
		Detail: oneline.Of(q.Agent + " asks for approval: " + q.Tool + " " + q.Subject), Next: "coven approvals list",
	})
}

// runHooks runs the user's notify commands for a notification, and exports the trace of the session if it
// is over.
func (c *Controller) runHooks(ctx context.Context, n notify.Notification) {
	c.exportTrace(context.WithoutCancel(ctx), n)
	n.Title, n.Detail, n.Next = c.Project.Hidden(n.Title), c.Project.Hidden(n.Detail), c.Project.Hidden(n.Next)
	for _, problem := range notify.Run(context.WithoutCancel(ctx), c.Project.Config.Notify, c.Project.Env.Environ(), n) {
		c.notify(Notice{Task: n.Task, Text: "warning: notify: " + problem})
	}
}
