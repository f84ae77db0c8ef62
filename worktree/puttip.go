package worktree

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// PutTip moves the task's branch back to tip. It first stores the branch's current commits under the
// returned ref. The worktree's files do not change. If the branch is already at tip, ref is "".
func PutTip(ctx context.Context, w *repo.Worktree, tip, note string) (rescued string, err error) {
	now, err := w.Tip(ctx)
	if err != nil || now == tip {
		return "", err
	}
	if rescued, err = rescue.Take(ctx, w, note, true); err != nil {
		return "", err
	}
	if err := w.Repo.Transact(ctx, w.Repo.Git(), note, ref.Move(names.HeadsPrefix+w.Branch, tip, now)); err != nil {
		return "", fmt.Errorf("restore the branch of %s: %w", w.TaskID, err)
	}
	return rescued, nil
}
