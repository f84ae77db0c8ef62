package control

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
)

// Diff is the change in the worktree of a task.
type Diff struct {
	From, To string // the trees or commits that were compared
	Patch    string // as git diff prints it
	Files    []FileChange
	PatchID  string // identifies the change regardless of its commits; empty if nothing changed
}

// FileChange is a file of a Diff.
type FileChange struct {
	Path    string
	OldPath string // of a rename or copy, else empty
	Status  string // A, C, D, M, R or T
	Added   int    // lines; 0 for a binary file
	Deleted int
	Binary  bool
}

// Diff returns the change in the worktree of a task: committed, uncommitted and untracked files.
func (c *Controller) Diff(ctx context.Context, task string) (Diff, error) {
	v, err := c.Project.Find(ctx, task)
	if err != nil {
		return Diff{}, err
	}
	return c.change(ctx, v)
}

// change returns the change of a session's task.
func (c *Controller) change(ctx context.Context, v session.View) (Diff, error) {
	if v.Elsewhere() {
		found, err := handover.Change(ctx, c.Project, v)
		return diffOf(found), err
	}
	tree, err := c.Project.Repo.Find(ctx, v.Task)
	if errors.Is(err, worktree.ErrNoWorktree) && exit.Next(err) == "" {
		return Diff{}, NoDiff(v)
	}
	if err != nil { // such as a worktree that a person has moved
		return Diff{}, err
	}
	target, err := c.Project.Repo.Target(ctx, v.Info.Target)
	if err != nil {
		return Diff{}, err
	}
	found, err := diff.Of(ctx, tree, target.Tip)
	return diffOf(found), err
}

// Between returns the difference between two trees or commits.
func (c *Controller) Between(ctx context.Context, from, to string) (Diff, error) {
	found, err := diff.Between(ctx, c.Project.Repo, from, to)
	return diffOf(found), err
}

func diffOf(found diff.Diff) Diff {
	change := Diff{From: found.From, To: found.To, Patch: found.Patch, PatchID: found.PatchID}
	if found.Files != nil {
		change.Files = make([]FileChange, 0, len(found.Files))
	}
	for _, f := range found.Files {
		change.Files = append(change.Files, FileChange(f))
	}
	return change
}

// NoDiff returns an error that says where the change of a task without a worktree is.
func NoDiff(v session.View) error {
	switch {
	case v.Commit != "":
		return exit.Failedf("git show "+v.Commit, "task %s has landed", v.Task)
	case v.Rescue != "":
		return exit.Failedf("coven rescue show "+v.Rescue, "task %s no longer has a worktree: it is stored as %s", v.Task, v.Rescue)
	}
	return exit.Failedf("coven why "+shellword.Word(v.Task), "task %s has no worktree", v.Task)
}
