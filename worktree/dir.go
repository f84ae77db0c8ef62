package worktree

import (
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
