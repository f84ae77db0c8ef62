package isolation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// removeLeftLocks removes the lock files that killed programs of the task left in the worktree's git
// directory, so that the next program can use git. No program of the task may still be running. If another
// process uses the worktree, or that is unknown, the locks may belong to it and stay.
func removeLeftLocks(w *repo.Worktree) {
	locks := leftLocks(w)
	if len(locks) == 0 {
		return
	}
	if used, err := hasProcess(w.Path); used || err != nil {
		return
	}
	for _, lock := range locks {
		_ = os.Remove(lock) // git reports a lock that stays
	}
}

// leftLocks returns the lock files of the worktree's index, HEAD, and private refs and settings.
func leftLocks(w *repo.Worktree) []string {
	var locks []string
	add := func(path string, entry fs.DirEntry) {
		if strings.HasSuffix(path, ".lock") && entry.Type().IsRegular() {
			locks = append(locks, path)
		}
	}
	for _, name := range []string{"index.lock", "HEAD.lock"} {
		path := filepath.Join(w.Admin, name)
		if info, err := os.Lstat(path); err == nil {
			add(path, fs.FileInfoToDirEntry(info))
		}
	}
	_ = filepath.WalkDir(PrivatePath(w), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // the agent's directories may be unreadable
		case entry.IsDir() && path == PrivatePath(w, "objects"):
			return filepath.SkipDir
		}
		add(path, entry)
		return nil
	})
	return locks
}

// hasProcess reports whether a process of this user has its working directory in dir. The error is
// fs.ErrNotExist if there is no /proc.
func hasProcess(dir string) (bool, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, err
	}
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(cwds) == 0 {
		return false, errors.Join(err, fs.ErrNotExist)
	}
	for _, cwd := range cwds {
		at, err := os.Readlink(cwd) // fails for other users' processes and for ended ones
		if err == nil && (at == real || strings.HasPrefix(at, real+"/")) {
			return true, nil
		}
	}
	return false, nil
}
