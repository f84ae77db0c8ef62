package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/pool"
)

// park moves the worktree's files and its indexes into the pool. The caller holds the worktrees lock.
func (m *removal) park(ctx context.Context) error {
	w, r := m.w, m.w.Repo
	p := pool.Entry{ID: w.Name + "-" + rand.Text()[:8], Task: w.TaskID, Tree: m.tree, Settings: m.rec.Settings, Parked: time.Now().UTC(), Aside: m.aside}
	if converts, err := content.MayConvert(ctx, r, m.tree); err != nil || converts {
		changes, changesErr := r.Git().Changes(ctx, m.rec.Base, m.tree)
		if err := errors.Join(err, changesErr); err != nil {
			return err
		}
		for _, change := range changes {
			if change.Status != 'D' && !w.Cone.Skips(change.Path) {
				p.Rewrite = append(p.Rewrite, change.Path)
			}
		}
	}
	if err := os.Mkdir(pool.Path(r), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	r.Share(pool.Path(r))
	if err := file.CheckDirectory(pool.Path(r)); err != nil {
		return err
	}
	if err := file.WriteJSON(pool.RecordPath(r, p.ID, ".json"), p); err != nil {
		return err
	}
	failpoint.Point("park.recorded")
	for _, name := range []string{content.CommitIndex, content.SnapshotIndex} {
		if err := os.Rename(w.StatePath(name), pool.RecordPath(r, p.ID, "."+name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	failpoint.Point("park.indexes")
	return os.Rename(w.Path, pool.Path(r, p.ID))
}
