package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
)

// fetchTime limits how long a new session waits for a remote.
const fetchTime = time.Minute

// PullTarget returns the target of a change that lands with a pull request: the upstream of a local branch, or a remote-tracking ref, as it is now.
func PullTarget(ctx context.Context, repo *worktree.Repo, branch string) (worktree.Target, error) {
	up, err := remote.FetchUpstream(ctx, repo, branch, fetchTime)
	if err != nil {
		return worktree.Target{}, noUpstream(branch, up, "a pull request needs", err)
	}
	return worktree.Target{Branch: up.Name, Ref: up.Ref(), Tip: up.Tip}, nil
}

// RemoteTarget fetches the branch of a remote that a local branch follows, and the session of a task that the remote keeps, whose tip it returns, or "".
// Changes of such sessions land on that branch.
func RemoteTarget(ctx context.Context, p *project.Project, branch, name, task string) (t worktree.Target, tip string, err error) {
	up, found, err := remote.FetchUpstreamAnd(ctx, p.Repo, branch, fetchTime, nil, live.Ref(task))
	if err != nil && up.Remote == name && !errors.Is(err, remote.ErrNoBranch) {
		return t, "", handover.Unreachable(p, name, errors.Unwrap(err))
	}
	if err != nil {
		return t, "", noUpstream(branch, up, "--remote needs", err)
	}
	if up.Remote != name {
		return t, "", exit.Usagef("coven run --remote "+shellword.Word(up.Remote), "%s follows %s, not a branch of %s", branch, up.Name, name)
	}
	return worktree.Target{Branch: up.Name, Ref: up.Ref(), Tip: up.Tip}, found[live.Ref(task)], nil
}

// noUpstream returns the error for a branch whose upstream could not be fetched.
func noUpstream(branch string, up remote.Upstream, need string, err error) error {
	next := "git remote add origin URL"
	switch {
	case errors.Is(err, remote.ErrNoBranch):
		next = "git push --set-upstream " + shellword.Word(up.Remote) + " " + shellword.Word(branch)
	case up.Remote != "":
		next = "git fetch " + shellword.Word(up.Remote)
	}
	return exit.Usagef(next, "%s the upstream of %s: %w", need, branch, errors.Unwrap(err))
}

// Base fetches the remote branch that a new session starts from if worktree.base is "remote". If that
// fails, it returns the problem, and the session starts from the local target.
func Base(ctx context.Context, repo *worktree.Repo, target worktree.Target) (up remote.Upstream, problem string) {
	up, err := remote.FetchUpstream(ctx, repo, target.Branch, fetchTime)
	if err != nil {
		return remote.Upstream{}, "worktree.base: " + err.Error() + "; the task starts from the local " + target.Branch
	}
	if in, err := remote.Contains(ctx, repo, target.Tip, up.Tip); err == nil && in {
		return remote.Upstream{}, "" // the target contains it
	}
	return up, ""
}
