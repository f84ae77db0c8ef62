package main

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// commands runs shell commands: runner's interface.
type commands struct {
	launcher *process.Launcher
	site     *site
	idle     time.Duration
}

// Run implements runner's commands.
func (c commands) Run(ctx context.Context, cmd runner.Command) (runner.Ran, error) {
	dir, err := c.site.dir(cmd.Workdir)
	if err != nil {
		return runner.Ran{}, err
	}
	env, err := c.site.environment(cmd.Env, cmd.Secrets)
	if err != nil {
		return runner.Ran{}, err
	}
	start := time.Now()
	exit, output, err := c.launcher.Run(ctx, process.Spec{
		Argv: []string{"sh", "-c", cmd.Shell}, Dir: dir,
		Env:        append(agent.Environment(c.site.environ(), c.site.pass), env...),
		Transcript: cmd.Transcript, Idle: c.idle,
	})
	if err != nil {
		return runner.Ran{}, err
	}
	ran := runner.Ran{ExitCode: exit.Code, Output: c.site.secrets.Text(string(output)), Duration: time.Since(start)}
	over := (*engine.OverTimeError)(nil)
	switch {
	case errors.Is(exit.Cause, process.ErrIdle), errors.As(exit.Cause, &over):
		ran.Stopped = exit.Cause.Error()
	case exit.Cause != nil:
		return runner.Ran{}, exit.Cause
	}
	return ran, nil
}
