package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/worktree"
)

// noDiff says where the change of a task without a worktree is.
func noDiff(v session.View) error {
	switch {
	case v.Commit != "":
		return exit.Failedf("git show "+v.Commit, "task %s has landed", v.Task)
	case v.Rescue != "":
		return exit.Failedf("git show "+v.Rescue, "the worktree of task %s was removed; it is stored as %s", v.Task, v.Rescue)
	}
	return exit.Failedf("coven why "+shellword.Word(v.Task), "task %s has no worktree", v.Task)
}

// ChangeOf is the worktree of a session's task and what it changes.
func (c *Controller) ChangeOf(ctx context.Context, v session.View) (*worktree.Worktree, worktree.Diff, error) {
	tree, err := c.Project.Repo.Find(ctx, v.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return nil, worktree.Diff{}, noDiff(v)
	}
	if err != nil {
		return nil, worktree.Diff{}, err
	}
	target, err := c.Project.Repo.Target(ctx, strings.TrimPrefix(v.Info.Target, "refs/heads/"))
	if err != nil {
		return nil, worktree.Diff{}, err
	}
	diff, err := tree.Diff(ctx, target.Tip)
	return tree, diff, err
}
