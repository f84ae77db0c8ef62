package control

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/telemetry"
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
	err := sendTrace(ctx, c.Project, n.Session)
	if err == nil {
		return
	}
	for problem := range strings.Lines(err.Error()) { // of the file and of the endpoint
		c.notify(Notice{Task: n.Task, Text: "warning: telemetry: " + c.Project.Hidden(oneline.Of(problem))})
	}
}

// sendTrace sends the trace of a session to the configured endpoint and file.
func sendTrace(ctx context.Context, p *project.Project, id string) error {
	v, err := session.Load(filepath.Join(p.Repo.Root, session.Dir, id))
	if err != nil {
		return err
	}
	headers, err := telemetry.Headers(p.Env.Getenv(telemetry.HeadersVariable))
	if err != nil {
		return err
	}
	to := telemetry.To{Endpoint: p.Config.Telemetry.Endpoint, File: p.Config.Telemetry.File, Headers: headers}
	if below, ok := strings.CutPrefix(to.File, "~/"); ok {
		home := p.Env.Getenv("HOME")
		if home == "" {
			return fmt.Errorf("%s: HOME is not set", to.File)
		}
		to.File = filepath.Join(home, below)
	}
	entries := v.ExecutionTrace()
	for i := range entries {
		entries[i].Error = p.Hidden(entries[i].Error)
	}
	return telemetry.Export(ctx, to, telemetry.Session{
		ID: v.ID, TraceID: v.TraceID, Task: v.Task, Status: string(v.Status), Detail: p.Hidden(v.Detail), Started: v.Started, Ended: cmp.Or(v.Ended, v.Updated),
		CostUSD: v.Used.USD, Entries: entries, Resource: telemetry.Resource{Version: p.Env.Version, Project: filepath.Base(p.Repo.Root)},
	})
}
