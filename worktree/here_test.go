package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// A task's worktree is identified by its path, regardless of git's answers there.
func TestHere(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T-1")
	below := filepath.Join(w.Path, "a", "b")
	must(t, os.MkdirAll(below, 0o755))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(w.Path, link))
	must(t, os.WriteFile(filepath.Join(w.Path, ".git"), []byte("gitdir: /nowhere\n"), 0o644))
	for _, dir := range []string{w.Path, below, link} {
		here, err := r.Here(t.Context(), dir)
		if err != nil || here.TaskID != "T-1" || here.Path != w.Path {
			t.Errorf("%s: %v, %v", dir, here, err)
		}
	}
	other := filepath.Join(filepath.Dir(w.Path), "other")
	must(t, os.MkdirAll(other, 0o755))
	for _, dir := range []string{r.Root, filepath.Dir(w.Path), other, t.TempDir()} {
		if _, err := r.Here(t.Context(), dir); !errors.Is(err, repo.ErrNoWorktree) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
