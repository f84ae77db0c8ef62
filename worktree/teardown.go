package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// A Teardown is the period in which programs prepare the removal of a worktree. Their changes to the branch
// and to files that git does not ignore are undone, so that Remove finds the task's own work.
type Teardown struct {
	w       *repo.Worktree
	session string
	state   teardownState
}

// teardownState is teardown.json, the state of the worktree before the programs ran. The file exists until
// that state is restored.
type teardownState struct {
	Snapshot string `json:"snapshot"` // commit
	Tip      string `json:"tip"`      // tip of the branch
}

func teardownPath(w *repo.Worktree) string { return w.StatePath("teardown.json") }

// BeginTeardown saves the worktree as a snapshot of a session. If coven was killed during an earlier
// Teardown, it first restores the state before that.
func BeginTeardown(ctx context.Context, w *repo.Worktree, session string) (*Teardown, error) {
	t := &Teardown{w: w, session: session}
	if err := file.ReadJSON(teardownPath(w), &t.state); err == nil {
		if _, _, err := t.End(ctx); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("tear down %s: %w", w.TaskID, err)
	}
	before, err := snapshot.Take(ctx, w, session, "before teardown")
	if err != nil {
		return nil, err
	}
	if t.state.Tip, err = w.Tip(ctx); err != nil {
		return nil, err
	}
	t.state.Snapshot = before.Commit
	if err := file.WriteJSON(teardownPath(w), t.state); err != nil {
		return nil, fmt.Errorf("tear down %s: %w", w.TaskID, err)
	}
	failpoint.Point("teardown.begun")
	return t, nil
}

// End restores the worktree. changed lists the files that the programs changed, and rescue is the ref of
// their commits, or "". If End fails, the worktree must not be removed; the next BeginTeardown tries again.
func (t *Teardown) End(ctx context.Context) (changed []string, rescue string, err error) {
	failpoint.Point("teardown.ended")
	w := t.w
	if rescue, err = PutTip(ctx, w, t.state.Tip, "moved in teardown"); err != nil {
		return nil, rescue, err
	}
	after, err := snapshot.Take(ctx, w, t.session, "after teardown")
	if err != nil {
		return nil, rescue, err
	}
	if changed, err = diff.Paths(ctx, w.Repo, t.state.Snapshot, after.Commit); err != nil {
		return nil, rescue, err
	}
	if len(changed) > 0 {
		if _, err := snapshot.Restore(ctx, w, t.session, t.state.Snapshot); err != nil {
			return nil, rescue, err
		}
	}
	failpoint.Point("teardown.restored")
	return changed, rescue, os.Remove(teardownPath(w))
}
