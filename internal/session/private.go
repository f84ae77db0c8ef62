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
// that it should have. It does not follow links.
func eachExposed(root string, do func(file string, mode fs.FileMode) error) error {
	shared := isShared(root)
	for _, dir := range []string{Dir, inboxDir, DamagedDir} {
		top := filepath.Join(root, dir)
		err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() && file != top && shared && isForeign(e) {
				return fs.SkipDir
			}
			if err != nil || !e.IsDir() && !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err == nil && file == top && shared {
				return nil // all users of a shared repository have directories there
			}
			if err != nil || info.Mode().Perm()&0o077 == 0 {
				return err
			}
			mode := fs.FileMode(fileMode)
			if e.IsDir() {
				mode = dirMode
			}
			return do(file, mode)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("check the modes of records: %w", err)
		}
	}
	return nil
}
