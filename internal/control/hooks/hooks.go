// Package hooks tells the user's programs that a session has stopped: the notify commands, and the receivers of its trace.
package hooks

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/telemetry"
	"github.com/coven-run/coven/internal/telemetry/notify"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Notification describes a session that has stopped or asks for an approval.
type Notification = notify.Notification

// Run runs the user's notify commands, also after an interrupt, and exports the trace of the session if it is over. It returns warnings, since the
// work is done.
func Run(ctx context.Context, p *project.Project, n Notification) (warnings []string) {
	ctx = context.WithoutCancel(ctx)
	warnings = exportTrace(ctx, p, n)
	n.Title, n.Detail, n.Next = p.Hidden(n.Title), p.Hidden(n.Detail), p.Hidden(n.Next)
	for _, problem := range notify.Run(ctx, p.Config.Notify, p.Env.Environ(), n) {
		warnings = append(warnings, "warning: notify: "+problem)
	}
	return warnings
}

// exportTrace exports the trace of a session that is over to the receivers in the user's settings.
func exportTrace(ctx context.Context, p *project.Project, n Notification) (warnings []string) {
	over := []string{string(session.Completed), string(session.Failed), string(session.Cancelled)}
	if p.Config.Telemetry == (config.Telemetry{}) || !slices.Contains(over, n.State) {
		return nil
	}
	err := sendTrace(ctx, p, n.Session)
	if err == nil {
		return nil
	}
	for problem := range strings.Lines(err.Error()) { // of the file and of the endpoint
		warnings = append(warnings, "warning: telemetry: "+p.Hidden(oneline.Of(problem)))
	}
	return warnings
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
