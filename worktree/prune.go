package worktree

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// OnlyHere reports whether W contains anything besides what has landed: files, ignored ones too,
// commits, git directories. landed is the tip of the branch that has landed. If there are more
// ignored files than Remove stores, the error is an *IgnoredError.
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
