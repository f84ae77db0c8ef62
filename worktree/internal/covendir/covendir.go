// Package covendir creates coven's directory in a checkout, with a .gitignore.
package covendir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/names"
)

// Ignore is the content of .coven/.gitignore.
const Ignore = `worktrees/
run/
` + keepSessions + `
` + ignoreSessions + `
sessions/*/logs/
sessions/*/results/
secrets.yaml
`

// keepSessions is the comment above the line that users remove to commit records.
const (
	keepSessions   = "# Sessions hold what tools printed. To commit them, remove the next line."
	ignoreSessions = "sessions/"
)

// MaxIgnore limits the size of a .gitignore, in bytes.
const MaxIgnore = 1 << 20

// SessionsIgnored reports whether ROOT/.coven/.gitignore ignores sessions. It also returns true if a user
// removed only that line, which is deliberate, and if the file does not exist, because it is created when
// needed.
func SessionsIgnored(root string) (bool, error) {
	data, err := regularfile.ReadIn(root, ".coven/.gitignore", MaxIgnore)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read .coven/.gitignore: %w", err)
	}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	ignores := func(line string) bool {
		return slices.Contains([]string{"sessions/", "sessions", "/sessions/", "/sessions", "*"}, strings.TrimSpace(line))
	}
	return slices.ContainsFunc(lines, ignores) || slices.Contains(lines, keepSessions), nil
}

// Ensure creates ROOT/.coven. If the directory contains no .gitignore, EnsureCovenDir adds a file that
// excludes worktrees, locks and logs.
func Ensure(root string) error {
	dir := filepath.Join(root, ".coven")
	if err := regularfile.Directory(root, names.WorktreesDir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	path := filepath.Join(dir, ".gitignore")
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = regularfile.Replace(path, []byte(Ignore), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
