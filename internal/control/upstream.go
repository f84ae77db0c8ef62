package control

import (
	"context"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/remote"
)

// pullTarget returns the target of a change that lands with a pull request: the upstream of the local branch, as it is now.
func (c *Controller) pullTarget(ctx context.Context, local worktree.Target) (worktree.Target, error) {
	up, err := remote.FetchUpstream(ctx, c.Project.Repo, local.Branch, fetchTime)
	if err != nil {
		return local, exit.Usagef("git remote add origin URL", "a pull request needs the upstream of %s: %w", local.Branch, err)
	}
	return worktree.Target{Branch: up.Name, Ref: up.Ref(), Tip: up.Tip}, nil
}

// fetchTime limits how long a task waits for a remote before it starts.
const fetchTime = time.Minute

// upstream fetches the remote branch that a new session starts from if worktree.base is "remote". If that
// fails, it returns the problem, and the session starts from the local target.
func (c *Controller) upstream(ctx context.Context, target worktree.Target, o Options) (up remote.Upstream, problem string) {
	if c.Project.Config.Worktree.Base != "remote" || o.Base != "" || target.IsRemote() {
		return up, ""
	}
	up, err := remote.FetchUpstream(ctx, c.Project.Repo, target.Branch, fetchTime)
	if err != nil {
		return remote.Upstream{}, "worktree.base: " + err.Error() + "; the task starts from the local " + target.Branch
	}
	if in, err := remote.Contains(ctx, c.Project.Repo, target.Tip, up.Tip); err == nil && in {
		return remote.Upstream{}, "" // the target contains it
	}
	return up, ""
}
