// Package tracing exports the execution trace of a session to the receivers in the user's settings.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/telemetry"
)

// Export sends the trace of a session to the configured endpoint and file.
func Export(ctx context.Context, p *project.Project, id string) error {
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
