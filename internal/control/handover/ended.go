package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/away"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/live"
	"github.com/coven-run/coven/worktree/remote"
	"github.com/coven-run/coven/worktree/snapshot"
)

// over handles the end of a session, which this machine knows, on the remote. The record here becomes the one of the machine that ended it, if the archives have that. If the
// task has landed, the session can be resumed, and completes.
func over(ctx context.Context, p *project.Project, name, task string, here session.View) error {
	if here.ID == "" || !here.Unfinished() {
		return live.Know(ctx, p.Repo, task, "")
	}
	known, err := live.Known(ctx, p.Repo, task)
	if err != nil {
		return err
	}
	up, archives, problem, err := fetchEnds(ctx, p, name, here)
	if err != nil {
		return err
	}
	m := &mirror{view: here, known: known}
	if err := m.end(ctx, p, up.Tip, archives); err != nil {
		return err
	}
	if err := recoverLanding(ctx, p, here); err != nil {
		return err
	}
	if problem = errors.Join(problem, m.archived(ctx, p, name, archives)); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.write(ctx, p); err != nil {
		return err
	}
	if problem != nil {
		warn(p, here, oneline.Of(p.Hidden("the record of its end is not here: "+problem.Error())))
	}
	if m.state.Landed == "" {
		return &EndedError{Task: here.Task}
	}
	if err := live.Know(ctx, p.Repo, here.Task, ""); err != nil {
		return err
	}
	return &LandedError{Task: here.Task, Commit: m.state.Landed}
}

// KeptWork is the work of a session that its remote keeps since another machine has continued or landed the session.
type KeptWork struct {
	Tip      string // of the branch; empty if nothing is kept
	Tree     string // of the files
	snapshot string
}

// WorkKept returns the work that this machine had before another machine landed the session in dir, if the session's remote keeps it. base is the commit from which the
// task started.
func WorkKept(ctx context.Context, r *worktree.Repo, dir, base string) (KeptWork, error) {
	at := away.Read(dir)
	if at == nil || at.Had == "" {
		return KeptWork{}, nil
	}
	had, err := live.Read(ctx, r, at.Had)
	if err != nil {
		return KeptWork{}, nil //nolint:nilerr // it is stored once more
	}
	return workOf(ctx, r, had, base)
}

// keptBy returns the work at the last tip of a session that this machine had, if a later tip keeps it.
func keptBy(ctx context.Context, r *worktree.Repo, task, base, later string) (KeptWork, error) {
	known, err := live.Known(ctx, r, task)
	if err != nil || known == "" {
		return KeptWork{}, err
	}
	had, err := live.Read(ctx, r, known)
	if err != nil || !live.Keeps(ctx, r, later, had) {
		return KeptWork{}, nil //nolint:nilerr // as above
	}
	return workOf(ctx, r, had, base)
}

func workOf(ctx context.Context, r *worktree.Repo, had live.State, base string) (k KeptWork, err error) {
	k = KeptWork{Tip: cmp.Or(had.Branch.Tip, base), snapshot: had.Snapshot}
	k.Tree, err = remote.Tree(ctx, r, cmp.Or(had.Snapshot, k.Tip))
	return k, err
}

// DropSnapshots deletes the snapshots of the session here, unless this machine has made others.
func (k KeptWork) DropSnapshots(ctx context.Context, r *worktree.Repo, session string) error {
	if k.snapshot == "" {
		return nil
	}
	last, err := snapshot.Last(ctx, r, session)
	if err != nil || last.Commit != k.snapshot {
		return err
	}
	return snapshot.Drop(ctx, r, session)
}

// An EndedError means that a session ended on another machine, without landing.
type EndedError struct{ Task string }

func (e *EndedError) Error() string {
	return fmt.Sprintf("the session of task %s ended on another machine, without landing", e.Task)
}

// CommandExit returns exit.Person.
func (e *EndedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that ends the session here.
func (e *EndedError) NextCommand() string { return "coven cancel " + shellword.Word(e.Task) }

// A LandedError means that another machine has landed a task. Its session here can be resumed in any state, and completes then.
type LandedError struct{ Task, Commit string }

func (e *LandedError) Error() string {
	return fmt.Sprintf("another machine has landed task %s as %.12s", e.Task, e.Commit)
}

// NextCommand returns the command that completes the session.
func (e *LandedError) NextCommand() string { return "coven resume " + shellword.Word(e.Task) }
