package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

const worktreesDir = ".coven/worktrees"

const covenIgnore = `worktrees/
run/
sessions/*/logs/
sessions/*/results/
secrets.yaml
`

// EnsureCovenDir makes ROOT/.coven and, unless there is one, the .gitignore in
// it that keeps worktrees, locks and logs out of the repository.
func EnsureCovenDir(root string) error {
	dir := filepath.Join(root, ".coven")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	path := filepath.Join(dir, ".gitignore")
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = renameio.WriteFile(path, []byte(covenIgnore), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Ignores reports whether git leaves a path of the main checkout out of commits:
// it is ignored and not tracked. path is relative to the root.
func (r *Repo) Ignores(ctx context.Context, path string) (bool, error) {
	seen, err := r.rootGit().Output(ctx, "ls-files", "--cached", "--others", "--exclude-standard", "--", path)
	if err != nil {
		return false, fmt.Errorf("ask git whether it ignores %s: %w", path, err)
	}
	return len(seen) == 0, nil
}
