package control

import (
	"context"

	"github.com/coven-run/coven/internal/control/receipts"
	"github.com/coven-run/coven/internal/control/tracker"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// tracker returns the tracker of a session's task, which claims as actor. Before it closes the task, it stores the receipts
// of the landings that have none yet. A failure causes only a notice, because the changes have landed.
func (c *Controller) tracker(s *session.Session, item project.Item, actor string) tracker.Tracker {
	id := item.Task.ID
	return tracker.Tracker{Item: item, Actor: actor, Hide: c.Project.Hidden, Landed: func(ctx context.Context) {
		if err := receipts.Store(context.WithoutCancel(ctx), c.Project, s.Dir, id, s.Events()); err != nil {
			c.notify(Notice{Task: id, Text: "warning: " + err.Error(), Next: exit.Next(err)})
		}
	}}
}
