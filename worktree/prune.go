package worktree

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// OnlyHere reports whether the worktree contains anything that has not landed: files (including ignored
// ones), commits, or git directories. landed is the branch tip that has landed. If there are more ignored
// files than Remove would store, the error is an *IgnoredError.
func OnlyHere(ctx context.Context, w *repo.Worktree, landed string) (bool, error) {
	l, err := w.Lock(ctx, "look at")
	if err != nil {
		return true, err
	}
	defer l.Release()
	m := &removal{w: w, req: RemoveRequest{Landed: landed}}
	if m.tip, err = w.TipIfAny(ctx); err != nil {
		return true, fmt.Errorf("look at %s: %w", w.TaskID, err)
	}
	only, err := m.unsaved(ctx, rescue.CapIgnored)
	if err != nil {
		return true, fmt.Errorf("look at %s: %w", w.TaskID, err)
	}
	return only, nil
}
