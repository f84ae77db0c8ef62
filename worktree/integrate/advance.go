package integrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
	"github.com/coven-run/coven/worktree/rescue"
)

// A Move is a change of the branch and the files of a worktree. It is recorded before it starts.
type Move struct {
	Old string `json:"old"` // the branch's tip before the move
	New string `json:"new"` // the branch's tip after the move
}

// MovePath returns the path of the file that records a move in progress.
func MovePath(w *repo.Worktree) string { return w.StatePath("integrate.json") }

// advance first moves the files, whose content is the staged tree, and then the branch. In the reverse
// order, the agent would seem to have reverted the target's changes after a kill.
func advance(ctx context.Context, w *repo.Worktree, m Move, ix *content.Index, staged string) error {
	ctx = context.WithoutCancel(ctx) // a started move is finished now, or later by FinishInterrupted
	if err := w.Keep(ctx, names.KeepMove, m.New); err != nil {
		return err
	}
	failpoint.Point("integrate.kept")
	if err := file.WriteJSON(MovePath(w), m); err != nil {
		return err
	}
	failpoint.Point("integrate.journal")
	if err := moveFiles(ctx, w, ix, staged, m.New, content.ShowNone); err != nil {
		return err
	}
	if w.Cone == nil {
		tree, err := w.Repo.Git().Tree(ctx, m.New)
		if err != nil {
			return err
		}
		ix.SetEqual(tree)
	}
	failpoint.Point("integrate.worktree")
	edit := ref.Move(names.HeadsPrefix+w.Branch, m.New, m.Old)
	if err := w.Repo.Transact(ctx, ix.Git, "coven: integrate", edit); err != nil {
		return err
	}
	failpoint.Point("integrate.ref")
	if err := ix.Publish(); err != nil {
		return err
	}
	return os.Remove(MovePath(w))
}

// onlyMoved checks that each file in the worktree has its old or its new content.
func onlyMoved(ctx context.Context, w *repo.Worktree, m Move, staged string) error {
	changed, err := w.Repo.Git().Changes(ctx, m.Old, staged)
	if err != nil || len(changed) == 0 {
		return err
	}
	missing, err := w.Repo.Git().Changes(ctx, staged, m.New)
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, change := range missing {
		open[change.Path] = true
	}
	dirty := &DirtyError{TaskID: w.TaskID}
	for _, change := range changed {
		if open[change.Path] && !content.IsReserved(change.Path) {
			dirty.Files = append(dirty.Files, change.Path)
		}
	}
	if len(dirty.Files) > 0 {
		return dirty
	}
	return nil
}

// moveFiles moves the files of the worktree from the staged tree to the tree of a commit. Modified reserved
// files do not change; ignored files in the way are rescued; the checkouts of submodules do not move.
func moveFiles(ctx context.Context, w *repo.Worktree, ix *content.Index, staged, to string, show content.Show) error {
	goal, err := targetTree(ctx, w, ix, staged, to)
	if err != nil {
		return err
	}
	blocked, err := content.Blocking(ctx, ix, staged, goal)
	if err != nil {
		return err
	}
	if len(blocked) > 0 {
		if _, err := rescue.StoreFiles(ctx, w, "overwritten by the target's changes", blocked); err != nil {
			return err
		}
	}
	if err := ix.SwitchTo(ctx, staged, goal, show); err != nil {
		return err
	}
	if err := submodule.LeaveLinks(ctx, w, staged, goal); err != nil {
		return err
	}
	if w.Cone != nil {
		return ix.ResetReserved(ctx, to)
	}
	present, err := w.Repo.Git().Entries(ctx, goal, content.Reserved()...)
	if err != nil {
		return err
	}
	_, err = ix.ReplaceReserved(ctx, present, to)
	return err
}

// targetTree returns the tree to move to: the tree of the commit to, but with the reserved paths of the staged
// tree if the worktree has modified reserved files.
func targetTree(ctx context.Context, w *repo.Worktree, ix *content.Index, staged, to string) (string, error) {
	l, err := ix.List(ctx, content.WithoutIgnored)
	if err != nil {
		return "", err
	}
	changed := append(l.Stale, l.Untracked...)
	if slices.ContainsFunc(changed, content.IsReserved) {
		return content.WithReserved(ctx, w.Repo, to, staged)
	}
	return to, nil
}

// FinishInterrupted finishes an interrupted integration. If the worktree has been modified since, it only discards
// the record: the changes in the files are then part of the task's work, and the next integration does the
// rest.
func FinishInterrupted(ctx context.Context, w *repo.Worktree, l *lock.Lock) error {
	var m Move
	err := file.ReadJSON(MovePath(w), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = finishMove(ctx, w, m, l)
	}
	if err != nil {
		return fmt.Errorf("finish the landing of %s: %w", w.TaskID, err)
	}
	return nil
}

func finishMove(ctx context.Context, w *repo.Worktree, m Move, l *lock.Lock) error {
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	ix, staged, err := content.StageOn(ctx, w, tip, l)
	if err != nil {
		return err
	}
	defer ix.Drop()
	kept, err := w.Repo.Git().HasCommit(ctx, m.New)
	if err != nil {
		return err
	}
	if tip == m.Old && !kept { // its ref was deleted and git gc removed the commit, so integrate again
		return os.Remove(MovePath(w))
	}
	if tip != m.Old {
		if err := ix.Publish(); err != nil {
			return err
		}
		return os.Remove(MovePath(w))
	}
	err = onlyMoved(ctx, w, m, staged)
	if _, dirty := errors.AsType[*DirtyError](err); dirty {
		return os.Remove(MovePath(w))
	}
	if err != nil {
		return err
	}
	return advance(ctx, w, m, ix, staged)
}
