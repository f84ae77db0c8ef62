package control

import (
	"context"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// Borrow opens the workspace of a task for a person, until giveUp is called. It returns an error if a
// session works in the worktree.
func (c *Controller) Borrow(ctx context.Context, task string) (_ *workspace.Workspace, giveUp func(), err error) {
	v, err := c.Project.SessionOf(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	tree, err := c.Project.Repo.Find(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	if err := c.checkSandbox(ctx, runUnsandboxed); err != nil {
		return nil, nil, err
	}
	s, err := c.openForWriting(v)
	if err != nil {
		return nil, nil, err
	}
	ws := c.workspace(s, v.Task, v.Info)
	ws.Worktree, ws.Warn = tree, func(text string) { c.notify(Notice{Task: v.Task, Text: text}) }
	return ws, func() {
		ws.Close()
		s.Close() //nolint:errcheck // nothing was written
	}, nil
}

// Scratch returns a workspace without a worktree, for programs of no task, until giveUp is called. id is the name of its
// worktree. The user must have agreed to run programs without a sandbox if there is none.
func (c *Controller) Scratch(ctx context.Context, id string, info event.Session) (_ *workspace.Workspace, giveUp func() error, err error) {
	if err := c.checkSandbox(ctx, runUnsandboxed); err != nil {
		return nil, nil, err
	}
	s, err := session.Create(c.Project.Repo.Root, id, id, c.Project.Env.Now)
	if err != nil {
		return nil, nil, err
	}
	s.Hide(c.Runtime.secrets)
	ws := c.workspace(s, id, info)
	ws.Warn = func(text string) { c.notify(Notice{Text: text}) }
	return ws, func() error {
		ws.Close()
		return s.Discard()
	}, nil
}
