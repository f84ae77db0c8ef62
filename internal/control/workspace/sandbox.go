package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree/isolation"
)

// Room returns the task's room in the sandbox.
func (s *Workspace) Room(ctx context.Context) (*sandbox.Room, error) {
	room, err := s.Sandbox.Room(s.Worktree.Name, isolation.Writable(s.Worktree)...)
	if err != nil {
		return nil, err
	}
	if s.Sandbox.HasPrivateNetwork() {
		if room.Ports, err = s.localPorts(ctx); err != nil {
			return nil, err
		}
	}
	room.Replace, room.Link, room.Trust = isolation.Files(s.Worktree), s.linked, s.toolTrust(ctx)
	return room, nil
}

// Isolated calls work while git in the worktree is separated from the repository, and then takes the
// commits made there into the repository, even if ctx is done.
func (s *Workspace) Isolated(ctx context.Context, work func() error) error {
	if err := isolation.Begin(ctx, s.Worktree); err != nil {
		return err
	}
	err := work()
	ctx = context.WithoutCancel(ctx)
	collected := s.restoreBranch(ctx)
	if collected == nil {
		collected = isolation.TakeCommits(ctx, s.Worktree)
	}
	if refused := (*isolation.CommitsError)(nil); errors.As(collected, &refused) && err == nil {
		return &runner.RefusedError{Reason: refused.Error()}
	}
	return errors.Join(err, collected)
}

// Run runs a program of the task in the sandbox and returns its output. It adds the variables
// that every program gets to those of spec.
func (s *Workspace) Run(ctx context.Context, spec process.Spec) (process.Exit, []byte, error) {
	return s.RunWith(ctx, sandbox.Access{}, spec)
}

// RunWith is like Run, but with the given access instead of that of the programs of steps.
func (s *Workspace) RunWith(ctx context.Context, access sandbox.Access, spec process.Spec) (exit process.Exit, output []byte, err error) {
	room, err := s.Room(ctx)
	if err != nil {
		return exit, nil, err
	}
	user := s.inWorktree(driver.Environment(s.Environ(), s.Pass))
	network, err := s.NetworkEnv(ctx)
	if err != nil {
		return exit, nil, err
	}
	spec.Env = sandbox.Merge(unattended(), user, room.Env(user), s.TraceEnv(), spec.Env, network)
	spec.Boundary = room.Boundary(access)
	exit, output, err = s.Launcher.Run(ctx, spec)
	if err != nil {
		return exit, output, fmt.Errorf("in the sandbox: %w", err)
	}
	if spec.Boundary != nil && exit.Code != 0 && wasRefused(output) {
		s.warned.Do(s.warnOfRefusal)
	}
	return exit, output, nil
}

// unattended returns the variables that tell programs that no person reads their output or answers. Those that the user
// passes override them.
func unattended() []string {
	return []string{
		"CI=true", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GH_PAGER=cat", "AWS_PAGER=", "SYSTEMD_PAGER=cat",
		"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1",
	}
}

// Command returns the command of a program of the task that runs alongside others, such as an MCP
// server; see process.Launcher.Command. all is its environment: that of every program, and env.
func (s *Workspace) Command(ctx context.Context, access sandbox.Access, env []string, argv ...string) (cmd *exec.Cmd, release func(), all []string, err error) {
	room, err := s.Room(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	user := s.inWorktree(driver.Environment(s.Environ(), s.Pass))
	network, err := s.NetworkEnv(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	cmd, release, err = s.Launcher.CommandWithin(room.Boundary(access), argv...)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("in the sandbox: %w", err)
	}
	return cmd, release, sandbox.Merge(user, room.Env(user), s.TraceEnv(), env, network), nil
}

// TraceVariable is the variable with the trace ID of the session that a program works for.
const TraceVariable = "COVEN_TRACE_ID"

// TraceEnv returns the variable with the session's trace ID.
func (s *Workspace) TraceEnv() []string {
	return []string{TraceVariable + "=" + s.Session.TraceID()}
}

// wasRefused reports whether a program printed that it may not change or read a file. The sandbox may not
// be the reason.
func wasRefused(output []byte) bool {
	return slices.ContainsFunc([]string{"Permission denied", "permission denied", "Read-only file system", "read-only file system", "EACCES", "EROFS"},
		func(words string) bool { return bytes.Contains(output, []byte(words)) })
}

// warnOfRefusal tells the user how to let a program of the task access a file elsewhere.
func (s *Workspace) warnOfRefusal() {
	text := "a program was refused a file, maybe by the sandbox; to allow it: sandbox.write in " + s.Network.ConfigFile + " (coven help sandbox)"
	s.warn(text)
}
