package control

import (
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/tracing"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/telemetry/notify"
	"github.com/coven-run/coven/internal/text/oneline"
)

// exportTrace exports the trace of a session that is over to the receivers in the user's settings. A
// failure is only a warning, because the work is done.
func (c *Controller) exportTrace(ctx context.Context, n notify.Notification) {
	to := c.Project.Config.Telemetry
	over := []event.Status{session.Completed, session.Failed, session.Cancelled}
	if to == (config.Telemetry{}) || !slices.Contains(over, event.Status(n.State)) {
		return
	}
	err := tracing.Export(ctx, c.Project, n.Session)
	if err == nil {
		return
	}
	for problem := range strings.Lines(err.Error()) { // of the file and of the endpoint
		c.notify(Notice{Task: n.Task, Text: "warning: telemetry: " + c.Project.Hidden(oneline.Of(problem))})
	}
}
