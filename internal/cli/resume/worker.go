package resume

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

// stretch is the result of coven resume --worker, which coven-worker reads: how a session stopped.
type stretch struct {
	Status string    `json:"status,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // before which resuming is useless
	Over   bool      `json:"over,omitempty"` // whether the remote no longer keeps the session
}

// forWorker continues one session for coven-worker. Its exit code is that of the session, if the result was printed.
func (o *resumeOptions) forWorker(ctx context.Context, c *control.Controller) error {
	if len(o.tasks) != 1 || o.remote == "" {
		return exit.Usagef("coven help resume", "--worker needs --remote and one task")
	}
	task := o.tasks[0]
	c.Worker, c.Fleet = &fleet.Worker{In: o.app.In, Print: func(line string) error { return o.app.Printf("%s\n", line) }}, nil
	stop := o.app.Watch(c, false, terminal.TaskLines)
	landed := (*handover.LandedError)(nil)
	err := o.take(ctx, c, task)
	if errors.As(err, new(*handover.EndedError)) { // another session may have begun since
		if _, err = c.Cancel(ctx, control.CancelRequest{Task: task, Ignored: control.IgnoredFiles{Store: true}}); err == nil {
			err = o.take(ctx, c, task)
		}
	}
	if brought := err == nil; brought || errors.As(err, &landed) { // one that has landed completes
		_, err = c.Resume(ctx, control.ResumeRequest{Task: task, Brought: brought})
	}
	stop() // the result is the last line
	ended, none, refused := (*handover.EndedError)(nil), (*project.NoSessionError)(nil), (*control.StateError)(nil)
	switch {
	case errors.As(err, &ended):
		_, err := c.Cancel(ctx, control.CancelRequest{Task: task, Ignored: control.IgnoredFiles{Store: true}})
		return errors.Join(err, o.print(stretch{Over: true}))
	case errors.Is(err, handover.ErrAway):
		return o.print(stretch{Status: "waiting", Reason: "remote"})
	case errors.As(err, &none):
		return o.print(stretch{Over: true})
	case err != nil && !errors.As(err, &refused) && !errors.Is(err, control.ErrInterrupted):
		return err
	}
	return o.report(ctx, c, task)
}

// take takes a session over, whoever has it.
func (o *resumeOptions) take(ctx context.Context, c *control.Controller, task string) error {
	if err := o.app.KeepOn(ctx, c.Project, o.remote, true, ""); err != nil {
		return err
	}
	return c.Bring(ctx, o.remote, []string{task}, true)
}

// report prints how a session stopped.
func (o *resumeOptions) report(ctx context.Context, c *control.Controller, task string) error {
	v, err := c.Project.Finder.OfTask(task)
	if err != nil {
		return err
	}
	kept, err := handover.Kept(context.WithoutCancel(ctx), c.Project, task)
	if err != nil {
		return err
	}
	return o.print(stretch{Status: string(v.Status), Reason: string(v.Reason), Until: v.Until, Over: !kept})
}

func (o *resumeOptions) print(s stretch) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.app.Printf("%s\n", line)
}
