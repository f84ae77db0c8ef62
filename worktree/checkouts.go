package worktree

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/regularfile"
)

// Checkouts returns the top directories of all checkouts of the repository: the main
// one, unless the repository is bare, and the linked ones that point back to it.
func (r *Repo) Checkouts() ([]string, error) {
	admins, err := r.admins()
	if err != nil {
		return nil, fmt.Errorf("list checkouts: %w", err)
	}
	var all []string
	if !r.bare {
		all = append(all, r.Root)
	}
	for _, admin := range admins {
		top := r.adminPath(admin)
		if top != "" && pointsTo(filepath.Join(top, ".git"), filepath.Join(r.GitDir, "worktrees", admin)) {
			all = append(all, top)
		}
	}
	return all, nil
}

// pointsTo reports whether a checkout's .git file names this git directory.
func pointsTo(link, dir string) bool {
	file, err := regularfile.Open(link) // an agent may have put a pipe there
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // read only
	raw, err := io.ReadAll(file)
	if err != nil {
		return false
	}
	to, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if !ok {
		return false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(link), to)
	}
	there, err := os.Stat(to)
	if err != nil {
		return false
	}
	here, err := os.Stat(dir)
	return err == nil && os.SameFile(here, there)
}
