package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Exposed counts the files and directories of sessions and of .coven/run that are
// accessible to other users.
func Exposed(root string) (int, error) {
	n := 0
	err := eachExposed(root, func(string, fs.FileMode) error { n++; return nil })
	return n, err
}

// MakePrivate makes the files that Exposed counts accessible only to their owner.
func MakePrivate(root string) error { return eachExposed(root, os.Chmod) }

// eachExposed calls do for each file or directory that others can access, with the mode
// that it should have. It does not follow links. In a shared repository, it skips the
// directories in which all users have records, and the records of others.
func eachExposed(root string, do func(file string, mode fs.FileMode) error) error {
	shared := isShared(root)
	for _, dir := range []string{Dir, inboxDir, DamagedDir} {
		top := filepath.Join(root, dir)
		err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case shared && (file == top || !e.IsDir() && isForeign(e)):
				return nil
			case shared && e.IsDir() && isForeign(e):
				return fs.SkipDir
			}
			mode, exposed, err := privateMode(e)
			if err != nil || !exposed {
				return err
			}
			return do(file, mode)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("check the modes of records: %w", err)
		}
	}
	return nil
}

// privateMode returns the mode that a file or directory should have if others can access it.
func privateMode(e fs.DirEntry) (mode fs.FileMode, exposed bool, err error) {
	if !e.IsDir() && !e.Type().IsRegular() {
		return 0, false, nil
	}
	info, err := e.Info()
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return 0, false, err
	}
	if e.IsDir() {
		return dirMode, true, nil
	}
	return fileMode, true, nil
}
