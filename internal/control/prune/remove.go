package prune

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// RemoveRequest asks to remove the worktree of a task.
type RemoveRequest struct {
	Task    string
	Ignored control.IgnoredFiles
	Warn    func(text string) // receives warnings; they do not stop the removal
}

// Remove stores the unlanded work of a worktree and removes the worktree. It returns the ref of the
// stored work, or "" if all of it had landed. It fails if the session of the task can
// continue.
func Remove(ctx context.Context, p *project.Project, r RemoveRequest) (ref string, err error) {
	r.Task, err = p.Resolve(ctx, r.Task, project.WithWorktree)
	if none := (*project.NoSessionError)(nil); errors.As(err, &none) {
		return "", exit.Failedf("coven worktree list", "task %s has no worktree%s", none.Task, none.Hint())
	}
	if err != nil {
		return "", err
	}
	v, err := p.Finder.OfTask(r.Task)
	known := err == nil
	if err != nil && !errors.Is(err, session.ErrNone) {
		return "", err
	}
	if err == nil && v.Live() {
		return "", exit.Personf("coven reject "+shellword.Word(r.Task)+" --reason TEXT", "task %s is %s: its session needs the worktree", r.Task, control.StateOf(v))
	}
	tree, err := worktree.Leftover(ctx, p.Repo, r.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return "", exit.Failedf("coven worktree list", "task %s has no worktree", r.Task)
	}
	if err != nil {
		return "", err
	}
	if known {
		if err := control.TearDownOver(ctx, p, v, r.Warn); err != nil {
			return "", err
		}
	}
	ref, err = worktree.Remove(ctx, tree, worktree.RemoveRequest{Note: "coven worktree remove", KeepBig: r.Ignored.Store, DropIgnored: r.Ignored.Drop})
	if err == nil {
		control.ForgetCaches(p, tree.Name)
	}
	return ref, project.AskAboutIgnored(err)
}
