package control

import (
	"context"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/session"
)

// tearDown runs the teardown commands of a session's plan before its worktree is removed. Failing commands
// cause only warnings: an error means that the worktree must not be removed. s is the session of v, or nil
// if the session is over and this process has not opened it.
func (c *Controller) tearDown(ctx context.Context, s *session.Session, v session.View) error {
	plan, err := project.PlanOf(v.Dir)
	if err != nil || len(plan.Worktree.Teardown) == 0 {
		return nil // the commands are unknown
	}
	warn := func(text string) { c.notify(Notice{Task: v.Task, Text: text}) }
	if !c.Runtime.consent.Given() {
		warn("worktree.teardown did not run: there is no sandbox here")
		return nil
	}
	if s == nil {
		if s, err = session.Open(c.Project.Repo.Root, v.ID, c.Project.Env.Now); err != nil {
			warn("worktree.teardown did not run: " + err.Error())
			return nil
		}
		defer s.Close() //nolint:errcheck // nothing was written
	}
	ws := c.workspace(s, v.Task, v.Info)
	ws.Warn = warn
	defer ws.Close()
	return ws.TearDown(ctx, workspace.Teardown{Commands: plan.Worktree.Teardown, Timeout: plan.Worktree.TeardownTimeout})
}

// TearDownOver is tearDown for a session that is over and a caller without a Controller. If the commands
// cannot run, the worktree can be removed nevertheless.
func TearDownOver(ctx context.Context, p *project.Project, v session.View, warn func(string)) error {
	plan, err := project.PlanOf(v.Dir)
	if err != nil || len(plan.Worktree.Teardown) == 0 {
		return nil
	}
	c, err := New(p)
	if err != nil {
		warn("worktree.teardown did not run: " + err.Error())
		return nil
	}
	defer c.Close()
	c.Observer.Notice = func(n Notice) { warn(n.Text) }
	return c.tearDown(ctx, nil, v)
}

// ForgetCaches removes the caches of a task whose worktree is gone. name is the name of the task in paths.
// Caches that cannot be removed do no harm.
func ForgetCaches(p *project.Project, name string) {
	_ = sandbox.Forget(p.Env.CacheDir(), p.Repo.GitDir, name)
}
