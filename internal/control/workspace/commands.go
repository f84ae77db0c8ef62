package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/process/checklock"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/land"
)

// Commands runs the shell commands of steps and checks. It implements the commands of package runner.
type Commands struct {
	Workspace *Workspace
	Idle      time.Duration
	Locks     checklock.Dir // of the user
}

// Reserve implements the commands of package runner.
func (c Commands) Reserve(ctx context.Context, of check.Check, alone bool, waiting func(string) error) (runner.Reservation, error) {
	r, err := c.Locks.Reserve(ctx, checklock.Request{
		Holder: checklock.Holder{Task: c.Workspace.Task, Repo: c.Workspace.Repo.Root, PID: os.Getpid()},
		Lock:   of.Lock, Alone: alone, Waiting: waiting,
	})
	if err != nil {
		return runner.Reservation{}, err
	}
	return runner.Reservation{Beside: r.Beside, Release: r.Release}, nil
}

// Prepared implements the commands of package runner.
func (c Commands) Prepared(ctx context.Context) ([]string, error) {
	return commit.ExcludeUntracked(ctx, c.Workspace.Worktree)
}

// Start implements the commands of package runner.
func (c Commands) Start(ctx context.Context) (string, error) { return c.Workspace.Start(ctx) }

// Rehearse implements the commands of package runner.
func (c Commands) Rehearse(ctx context.Context, message string) error {
	s := c.Workspace
	err := land.Rehearse(ctx, s.Worktree, commit.WithTrailers(message, s.trailers(ctx)), s.hook)
	filter := (*land.FilterError)(nil)
	if errors.As(err, &filter) {
		return &runner.RefusedError{Reason: filter.Error()}
	}
	if refused := refusal(err); refused != nil {
		return refused
	}
	return err
}

// explain returns the reason for the failure of a command if the sandbox may be the cause, or "".
func (c Commands) explain(ctx context.Context, cmd runner.Command, dir string, output []byte) string {
	if !cmd.Setup {
		if why := c.Workspace.belongsElsewhere(dir, output); why != "" {
			return why
		}
	}
	room, err := c.Workspace.Room(ctx)
	if err != nil {
		return "" // the next program reports it
	}
	if why := c.Workspace.missingInCache(room, output); why != "" {
		return why
	}
	home, _ := os.UserHomeDir() // without one, nothing is in it
	return c.Workspace.writesHome(home, output)
}

// passedBefore returns the session in which a command passed with the same inputs, and says so in the transcript.
func (c Commands) passedBefore(ctx context.Context, cmd runner.Command) (session string, err error) {
	err = c.Workspace.Isolated(ctx, func() error {
		session, err = c.Workspace.passedBefore(ctx, cmd.Shell)
		return err
	})
	if session != "" {
		_, err = fmt.Fprintf(cmd.Transcript, "not run: nothing that it read has changed since session %s\n", session)
	}
	return session, err
}

// Run implements the commands of package runner.
func (c Commands) Run(ctx context.Context, cmd runner.Command) (runner.Ran, error) {
	dir, err := c.Workspace.Dir(cmd.Workdir)
	if err != nil {
		return runner.Ran{}, err
	}
	env, err := c.Workspace.Environment(cmd.Env, cmd.Secrets)
	if err != nil {
		return runner.Ran{}, err
	}
	access := sandbox.Access{Apart: !cmd.Setup}
	if cmd.Reuse {
		session, err := c.passedBefore(ctx, cmd)
		if session != "" || err != nil {
			return runner.Ran{Reused: session}, err
		}
		access.Inputs = dir
	}
	start := time.Now()
	var exit process.Exit
	var output []byte
	var record bytes.Buffer
	access.Reads = &record
	err = c.Workspace.Isolated(ctx, func() (err error) {
		exit, output, err = c.Workspace.RunWith(ctx, access, process.Spec{
			Argv: []string{"sh", "-c", cmd.Shell}, Dir: dir, Env: env, Pipe: !cmd.TTY, Transcript: cmd.Transcript, Idle: c.Idle,
		})
		return err
	})
	if err != nil {
		return runner.Ran{}, err
	}
	ran := runner.Ran{
		ExitCode: exit.Code, Output: c.Workspace.Secrets.Text(string(output)), Duration: time.Since(start),
		NotIsolated: !c.Workspace.Sandbox.Isolates(),
	}
	if err := c.Workspace.addReads(ctx, &ran, cmd.Shell, record.Bytes()); err != nil {
		return runner.Ran{}, err
	}
	if !exit.OK() {
		ran.Keep = nil
		if why := c.explain(ctx, cmd, dir, output); why != "" {
			ran.Output = strings.TrimRight(ran.Output, "\n") + "\n" + why + "\n"
		}
	}
	over := (*engine.OverTimeError)(nil)
	switch {
	case errors.Is(exit.Cause, process.ErrIdle), errors.As(exit.Cause, &over):
		ran.Stopped = exit.Cause.Error()
		if why := waitsFor(ran.Output); why != "" {
			ran.Stopped += ": " + why
		}
	case exit.Cause != nil:
		return runner.Ran{}, exit.Cause
	}
	return ran, nil
}
