package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
)

// apart reports whether the stage must be at the top of the checkout, because the git directory is on
// another file system and files cannot be exchanged between the two.
func (c *Checkout) apart() (bool, error) {
	if c.stageAtTop {
		return true, nil
	}
	if err := os.MkdirAll(filepath.Dir(c.State), 0o755); err != nil {
		return false, err
	}
	here, err := nodeOf(c.top())
	there, err2 := nodeOf(filepath.Dir(c.State))
	return here.Dev != there.Dev, errors.Join(err, err2)
}

// makeStage creates the directories of the stage. If the stage is at the top of the checkout, a .gitignore
// in it hides it from git and `git clean`. The .gitignore is renamed into place, so that it is never
// incomplete.
func (m *Move) makeStage() error {
	if m.rec.Stage != m.c.State {
		hidden := filepath.Join(m.rec.Stage, ".git")
		if err := os.MkdirAll(hidden, 0o700); err != nil {
			return err
		}
		file := filepath.Join(hidden, "ignore")
		if err := os.WriteFile(file, []byte("*\n"), 0o644); err != nil {
			return err
		}
		if err := os.Rename(file, filepath.Join(m.rec.Stage, ".gitignore")); err != nil {
			return err
		}
		if err := os.Remove(hidden); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(m.fresh(), 0o777), os.MkdirAll(m.old(), 0o777))
}

// stage makes git merge the index and write the new files to an empty directory. git reads the attributes
// from the new index. Filters run in the checkout, because their programs may have relative paths.
func (m *Move) stage(ctx context.Context, from, to string) error {
	g := m.whole()
	g.WorkTree = m.fresh()
	g.Settings = slices.Concat(g.Settings, m.c.Settings)
	if err := g.Run(ctx, "read-tree", "-m", "-u", from, to); err != nil {
		err = fmt.Errorf("write the new files of %s: %w", m.c.top(), err)
		if git.ExitCode(err) > 0 && !isFull(m.c.State) && !isFull(m.fresh()) { // a filter failed
			return &Error{Path: m.c.top(), Reason: err.Error(), Next: "git -C " + shellword.Quote(m.c.top()) + " status", Cause: err}
		}
		return err
	}
	return nil
}

// recordStats records the stat data of the staged files.
func (m *Move) recordStats(paths []string) error {
	for _, path := range paths {
		st, err := statOf(filepath.Join(m.fresh(), path))
		if err != nil {
			return fmt.Errorf("write the new files of %s: %w", m.c.top(), err)
		}
		m.staged[path] = st
	}
	return nil
}

// almostFull is the free space in bytes below which a file system counts as full.
const almostFull = 256 << 10

// isFull reports whether the file system of a directory is full.
func isFull(dir string) bool {
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) != nil {
		return false
	}
	return disk.Bavail*uint64(disk.Bsize) < almostFull || disk.Files > 0 && disk.Ffree == 0
}

// explain replaces an error with ErrFull if a disk is full, because git's error is only text.
func (c *Checkout) explain(err error) error {
	if _, known := errors.AsType[*Error](err); known {
		return err
	}
	return Explain(err, c.top(), c.State, c.top())
}

// Explain returns an *Error for path that wraps ErrFull and err if one of the directories is on a full file
// system. Otherwise it returns err.
func Explain(err error, path string, dirs ...string) error {
	for _, dir := range dirs {
		for _, there := os.Lstat(dir); errors.Is(there, fs.ErrNotExist); _, there = os.Lstat(dir) {
			dir = filepath.Dir(dir)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || isFull(dir) {
			return &Error{
				Path: path, Reason: "the disk is full", Next: "make room on the file system of " + dir,
				Cause: fmt.Errorf("%w: %w", ErrFull, err),
			}
		}
	}
	return err
}
