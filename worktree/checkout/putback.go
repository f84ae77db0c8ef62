package checkout

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/worktree/internal/git"
)

// PutBack writes the files again that Advance has added and that are missing: git clean removes them if it read the
// index before.
func (m *Move) PutBack(ctx context.Context) error {
	var missing []string
	for _, s := range m.rec.Steps {
		path := string(s.Path)
		if _, err := os.Lstat(filepath.Join(m.c.top(), path)); s.Have == "" && m.merged.entries[path].file() && errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, path)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	g := m.c.Git
	g.Settings = slices.Concat(g.Settings, m.c.Settings)
	_, err := g.Feed(ctx, git.Join(missing), "checkout-index", "-q", "-z", "--stdin")
	return err
}
