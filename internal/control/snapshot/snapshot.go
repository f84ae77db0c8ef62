// Package snapshot lists the saved states of a worktree, and restores files from one.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/snapshot"
)

// State is a saved state of the worktree of a task.
type State struct {
	N       int // number in the session, from 1
	Commit  string
	Tree    string // its files, without conversions of git
	Time    time.Time
	Note    string   // when it was saved, such as "start of implement" or "before Write a.go"
	Changed []string // paths that differ from the previous snapshot; nil for the first
}

// Of returns the snapshots of a session, oldest first. name is the ID of the session or its task.
func Of(ctx context.Context, p *project.Project, name string) ([]State, error) {
	v, err := p.SessionOf(ctx, name)
	if err != nil {
		return nil, err
	}
	saved, err := snapshot.List(ctx, p.Repo, v.ID)
	if err != nil {
		return nil, err
	}
	all := make([]State, len(saved))
	for i, s := range saved {
		all[i] = State{N: s.N, Commit: s.Commit, Tree: s.Tree, Time: s.Time, Note: s.Note}
		if i == 0 {
			continue
		}
		if all[i].Changed, err = diff.Paths(ctx, p.Repo, saved[i-1].Tree, s.Tree); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Request asks to restore files of a worktree from a snapshot.
type Request struct {
	Name  string   // of a task, or of its newest session
	N     int      // the snapshot; 0 for the newest one whose files differ from the worktree
	Paths []string // files and directories, relative to the top of the repository; empty for all
}

// Reverted is the result of Revert.
type Reverted struct {
	Task     string
	To, Undo State    // the restored state and the state before
	Changed  []string // the paths that the revert changed
}

// Revert restores files of the worktree of a task that is not running. HEAD, the branch, the index, the
// stash and ignored files do not change. It saves the state before as a snapshot.
func Revert(ctx context.Context, in *project.Project, r Request) (Reverted, error) {
	paths, err := insidePaths(r.Paths)
	if err != nil {
		return Reverted{}, err
	}
	v, err := in.SessionOf(ctx, r.Name)
	if err != nil {
		return Reverted{}, err
	}
	if newest, err := in.Find(ctx, v.Task); err != nil || newest.ID != v.ID {
		return Reverted{}, errors.Join(err, exit.Failedf("coven snapshots "+shellword.Word(v.Task), "session %s is not the newest one of task %s", v.ID, v.Task))
	}
	if err := control.Refusal(control.OpRevert, v); err != nil {
		return Reverted{}, err
	}
	s, err := session.Open(in.Repo.Root, v.ID, in.Env.Now)
	if errors.Is(err, session.ErrBusy) {
		return Reverted{}, control.Busy(v, control.BusyNext(control.OpRevert)+" "+shellword.Word(v.Task))
	}
	if err != nil {
		return Reverted{}, err
	}
	s.BackUp(in.Backups())
	done, err := revert(ctx, in, v, r.N, paths)
	return done, errors.Join(err, s.Close())
}

// revert is Revert for a session that this process holds.
func revert(ctx context.Context, in *project.Project, v session.View, n int, paths []string) (Reverted, error) {
	repo, snapshots := in.Repo, "coven snapshots "+shellword.Word(v.Task)
	tree, err := repo.Find(ctx, v.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return Reverted{}, control.NoDiff(v)
	}
	if err != nil {
		return Reverted{}, err
	}
	which := strconv.Itoa(n)
	if len(paths) == 0 || n == 0 {
		now, err := snapshot.Take(ctx, tree, v.ID, "before coven revert")
		if err != nil {
			return Reverted{}, err
		}
		if n == 0 {
			which = "with other files"
			if n, err = snapshot.LastDiffering(ctx, repo, v.ID, now); err != nil {
				return Reverted{}, err
			}
		}
	}
	to, err := snapshot.Find(ctx, repo, v.ID, n)
	if errors.Is(err, snapshot.ErrNone) {
		err = exit.Failedf(snapshots, "task %s has no snapshot %s", v.Task, which)
	}
	if err != nil {
		return Reverted{}, err
	}
	undo, err := snapshot.Revert(ctx, tree, v.ID, to.N, paths...)
	if missing := (*snapshot.NoPathError)(nil); errors.As(err, &missing) {
		err = exit.Failedf(snapshots, "%w", missing)
	}
	if err != nil {
		return Reverted{}, err
	}
	done := Reverted{Task: v.Task, To: newState(to), Undo: newState(undo)}
	if undo.Only != nil {
		done.Changed, err = snapshot.Differing(ctx, repo, undo, to)
		return done, err
	}
	after, err := snapshot.Take(ctx, tree, v.ID, fmt.Sprintf("after coven revert to %d", to.N))
	if err != nil {
		return done, err
	}
	done.Changed, err = diff.Paths(ctx, repo, undo.Tree, after.Tree)
	return done, err
}

func newState(s snapshot.Snapshot) State {
	return State{N: s.N, Commit: s.Commit, Tree: s.Tree, Time: s.Time, Note: s.Note}
}

// insidePaths validates paths in a repository, and returns them in the form of git.
func insidePaths(paths []string) ([]string, error) {
	var inside []string
	for _, p := range paths {
		clean := path.Clean(filepath.ToSlash(p))
		if !filepath.IsLocal(p) || clean == "." {
			return nil, exit.Usagef("give a path relative to the top of the repository, such as src/app.ts", "%q is not a file or directory in the repository", p)
		}
		inside = append(inside, clean)
	}
	return inside, nil
}
