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
	"github.com/coven-run/coven/worktree/internal/names"
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
		if top != "" && sameFile(r.GitDirOf(top), filepath.Join(r.GitDir, "worktrees", admin)) {
			all = append(all, top)
		}
	}
	return all, nil
}

// GitDirOf returns the git directory that the .git file of a checkout names, or "". It returns the worktree's git
// directory even while an agent works there.
func (r *Repo) GitDirOf(top string) string {
	raw, err := regularfile.Read(filepath.Join(top, ".git"), object.MaxGitFile) // an agent may have replaced it with a pipe or a large file
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	if filepath.Base(dir) != names.Closed {
		return dir
	}
	rec, err := r.ReadRecord(filepath.Base(filepath.Dir(dir)))
	if err != nil {
		return ""
	}
	return filepath.Join(r.GitDir, "worktrees", rec.Admin)
}

// sameFile reports whether two paths lead to the same file.
func sameFile(one, two string) bool {
	here, err := os.Stat(one)
	if err != nil {
		return false
	}
	there, err := os.Stat(two)
	return err == nil && os.SameFile(here, there)
}
