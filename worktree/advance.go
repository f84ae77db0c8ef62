package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// A move is a change of the branch together with W, recorded before it starts.
type move struct {
	Old string `json:"old"` // the branch's tip before
	New string `json:"new"` // and after
}

func (w *Worktree) movePath() string { return w.ours("integrate.json") }

// advance moves W, whose content is the staged tree, and then the branch. In the
// reverse order, the agent would seem to have reverted the target's changes.
func (w *Worktree) advance(ctx context.Context, m move, ix *index, staged string) error {
	ctx = context.WithoutCancel(ctx) // a started move is finished now, or by settle later
	if err := w.keep(ctx, keepMove, m.New); err != nil {
		return err
	}
	failpoint.Point("integrate.kept")
	if err := file.WriteJSON(w.movePath(), m); err != nil {
		return err
	}
	failpoint.Point("integrate.journal")
	if err := w.carry(ctx, ix, staged, m.New, noneShown); err != nil {
		return err
	}
	if w.cone == nil {
		tree, err := w.repo.git().Tree(ctx, m.New)
		if err != nil {
			return err
		}
		ix.setEqual(tree)
	}
	failpoint.Point("integrate.worktree")
	edit := git.Move(headsPrefix+w.Branch, m.New, m.Old)
	if err := w.repo.transact(ctx, ix.git, "coven: integrate", edit); err != nil {
		return err
	}
	failpoint.Point("integrate.ref")
	if err := ix.publish(); err != nil {
		return err
	}
	return os.Remove(w.movePath())
}

func (w *Worktree) stagedOn(ctx context.Context, tip string, l *lock.Lock) (*index, string, error) {
	g := w.git()
	if l != nil {
		g.Hold = l.File()
	}
	ix, err := w.openIndex(g, commitIndex)
	if err != nil {
		return nil, "", err
	}
	tree, err := ix.stageFor(ctx, tip, tip)
	if err != nil {
		ix.drop()
	}
	return ix, tree, err
}

// onlyMoved checks that each file of W has its old or its new content.
func (w *Worktree) onlyMoved(ctx context.Context, m move, staged string) error {
	changed, err := w.repo.git().Changes(ctx, m.Old, staged)
	if err != nil || len(changed) == 0 {
		return err
	}
	missing, err := w.repo.git().Changes(ctx, staged, m.New)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, change := range missing {
		open[change.Path] = true
	}
	dirty := &DirtyError{TaskID: w.TaskID}
	for _, change := range changed {
		if open[change.Path] && !isReserved(change.Path) {
			dirty.Files = append(dirty.Files, change.Path)
		}
	}
	if len(dirty.Files) > 0 {
		return dirty
	}
	return nil
}

// carry moves the files of W from the staged tree to the tree of a commit. Modified
// reserved files do not change; ignored files in the way are rescued; submodules stay
// where they are.
func (w *Worktree) carry(ctx context.Context, ix *index, staged, to string, show shown) error {
	goal, err := w.sparing(ctx, ix, staged, to)
	if err != nil {
		return err
	}
	blocked, err := w.blocking(ctx, ix, staged, goal)
	if err != nil {
		return err
	}
	if len(blocked) > 0 {
		if _, err := w.rescueFiles(ctx, "overwritten by the target's changes", blocked); err != nil {
			return err
		}
	}
	if err := ix.switchTo(ctx, staged, goal, show); err != nil {
		return err
	}
	if err := w.leave(ctx, staged, goal); err != nil {
		return err
	}
	if w.cone != nil {
		return ix.reserveAny(ctx, to)
	}
	present, err := w.repo.git().Entries(ctx, goal, reserved()...)
	if err != nil {
		return err
	}
	_, err = ix.replaceReserved(ctx, present, to)
	return err
}

// sparing returns the tree to which W moves: that of a commit, but with the reserved
// paths of the staged tree if W has changed some of them.
func (w *Worktree) sparing(ctx context.Context, ix *index, staged, to string) (string, error) {
	l, err := ix.list(ctx, withoutIgnored)
	if err != nil {
		return "", err
	}
	changed := append(l.stale, l.untracked...)
	if slices.ContainsFunc(changed, isReserved) {
		return w.repo.withReserved(ctx, to, staged)
	}
	return to, nil
}

// blocking lists the files in W without an index entry at paths that a move between
// two trees writes. git would overwrite ignored files.
func (w *Worktree) blocking(ctx context.Context, ix *index, from, to string) ([]string, error) {
	changes, err := ix.git.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	return blockers(ctx, ix.git, changes)
}

// settle finishes a killed integration. If W was changed meanwhile, it discards the
// record: the changes in W are then part of the task's work, and the next integration
// does the rest.
func (w *Worktree) settle(ctx context.Context, l *lock.Lock) error {
	var m move
	err := file.ReadJSON(w.movePath(), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = w.finish(ctx, m, l)
	}
	if err != nil {
		return fmt.Errorf("finish the landing of %s: %w", w.TaskID, err)
	}
	return nil
}

func (w *Worktree) finish(ctx context.Context, m move, l *lock.Lock) error {
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	ix, staged, err := w.stagedOn(ctx, tip, l)
	if err != nil {
		return err
	}
	defer ix.drop()
	kept, err := w.repo.hasCommit(ctx, m.New)
	if err != nil {
		return err
	}
	if tip == m.Old && !kept { // its ref was deleted, and git gc removed the commit: integrate again
		return os.Remove(w.movePath())
	}
	if tip != m.Old {
		if err := ix.publish(); err != nil {
			return err
		}
		return os.Remove(w.movePath())
	}
	err = w.onlyMoved(ctx, m, staged)
	if _, dirty := errors.AsType[*DirtyError](err); dirty {
		return os.Remove(w.movePath())
	}
	if err != nil {
		return err
	}
	return w.advance(ctx, m, ix, staged)
}
