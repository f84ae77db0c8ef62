package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/regularfile"
)

const worktreesDir = ".coven/worktrees"

// covenIgnore is the content of .coven/.gitignore.
const covenIgnore = `worktrees/
run/
` + keepSessions + `
` + ignoreSessions + `
sessions/*/logs/
sessions/*/results/
secrets.yaml
`

// keepSessions is the comment above the line that people remove to commit records.
const (
	keepSessions   = "# Sessions hold what tools printed. To commit them, remove the next line."
	ignoreSessions = "sessions/"
)

// oldIgnores returns the contents that earlier versions wrote.
func oldIgnores() []string {
	return []string{
		"worktrees/\nrun/\nsessions/*/logs/\nsessions/*/results/\nsecrets.yaml\n",
		"worktrees/\nrun/\nsessions/*/logs/\nsessions/*/results/\n",
	}
}

// The states of .coven/.gitignore.
const (
	IgnoreGood    = "good"    // as coven writes it, or ignores sessions, or deliberately does not
	IgnoreOld     = "old"     // exactly as an earlier version wrote it
	IgnoreChanged = "changed" // changed by a user, and does not ignore sessions
)

// maxIgnore limits the size of a .gitignore, in bytes.
const maxIgnore = 1 << 20

// CovenIgnore returns the state of ROOT/.coven/.gitignore. A missing file is good: it
// is created when needed.
func CovenIgnore(root string) (string, error) {
	data, err := regularfile.ReadIn(root, ".coven/.gitignore", maxIgnore)
	if errors.Is(err, fs.ErrNotExist) {
		return IgnoreGood, nil
	}
	if err != nil {
		return "", fmt.Errorf("read .coven/.gitignore: %w", err)
	}
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	ignores := func(line string) bool {
		return slices.Contains([]string{"sessions/", "sessions", "/sessions/", "/sessions", "*"}, strings.TrimSpace(line))
	}
	switch {
	case slices.Contains(oldIgnores(), string(data)):
		return IgnoreOld, nil
	case slices.ContainsFunc(lines, ignores), slices.Contains(lines, keepSessions):
		return IgnoreGood, nil
	}
	return IgnoreChanged, nil
}

// UpdateCovenIgnore replaces a .coven/.gitignore that an earlier version wrote. It
// does not change a file that a user edited.
func UpdateCovenIgnore(root string) error {
	state, err := CovenIgnore(root)
	if err != nil || state != IgnoreOld {
		return err
	}
	if err := regularfile.Replace(filepath.Join(root, ".coven", ".gitignore"), []byte(covenIgnore), 0o644); err != nil {
		return fmt.Errorf("write .coven/.gitignore: %w", err)
	}
	return nil
}

// EnsureCovenDir creates ROOT/.coven and, if missing, the .gitignore in it that keeps
// worktrees, locks and logs out of the repository.
func EnsureCovenDir(root string) error {
	dir := filepath.Join(root, ".coven")
	if err := regularfile.Directory(root, worktreesDir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	path := filepath.Join(dir, ".gitignore")
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = regularfile.Replace(path, []byte(covenIgnore), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Ignores reports whether a path of the main checkout is ignored and not tracked by
// git. path is relative to the root.
func (r *Repo) Ignores(ctx context.Context, path string) (bool, error) {
	seen, err := r.rootGit().Output(ctx, "ls-files", "--cached", "--others", "--exclude-standard", "--", path)
	if err != nil {
		return false, fmt.Errorf("ask git whether it ignores %s: %w", path, err)
	}
	return len(seen) == 0, nil
}
