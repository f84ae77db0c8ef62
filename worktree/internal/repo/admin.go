package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
)

// Admins lists the names in GitDir/worktrees.
func (r *Repo) Admins() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(r.GitDir, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// AdminPath returns the checkout that a git directory in GitDir/worktrees belongs to, or "" if that is
// unknown, for example while git creates it.
func (r *Repo) AdminPath(admin string) string {
	dir := filepath.Join(r.GitDir, "worktrees", admin)
	raw, err := file.Read(filepath.Join(dir, "gitdir"), object.MaxGitFile) // an agent may have replaced it with a pipe
	if err != nil {
		return ""
	}
	link := strings.TrimSuffix(string(raw), "\n")
	if link == "" {
		return ""
	}
	if !filepath.IsAbs(link) {
		link = filepath.Join(dir, link)
	}
	return filepath.Dir(link)
}

// TaskAdmins returns the names of the git directories that belong to tasks, so that agents can write them.
func (r *Repo) TaskAdmins() (map[string]bool, error) {
	names, err := r.TaskNames()
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for _, name := range names {
		rec, err := r.ReadRecord(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		mine[rec.Admin] = true
	}
	return mine, nil
}

// TaskNames lists the names of the tasks that have a directory in coven's part of the git directory.
func (r *Repo) TaskNames() ([]string, error) {
	entries, err := os.ReadDir(r.StatePath("tasks"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// Checkouts returns the top directories of all checkouts of the repository: the main checkout, unless the
// repository is bare, and the linked ones whose .git points back to the repository.
func (r *Repo) Checkouts() ([]string, error) {
	admins, err := r.Admins()
	if err != nil {
		return nil, fmt.Errorf("list checkouts: %w", err)
	}
	var all []string
	if !r.Bare {
		all = append(all, r.Root)
	}
	for _, admin := range admins {
		top := r.AdminPath(admin)
		if top != "" && pointsTo(filepath.Join(top, ".git"), filepath.Join(r.GitDir, "worktrees", admin)) {
			all = append(all, top)
		}
	}
	return all, nil
}

// pointsTo reports whether a checkout's .git file names this git directory.
func pointsTo(link, dir string) bool {
	raw, err := regularfile.Read(link, object.MaxGitFile) // an agent may have replaced it with a pipe or a large file
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
