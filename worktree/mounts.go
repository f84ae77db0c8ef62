package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
)

// unmounted returns an error if something is mounted at or below a path: its files are not coven's, and would be
// deleted with the directory.
func unmounted(path string) error {
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	found, err := mountinfo.GetMounts(mountinfo.PrefixFilter(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // without /proc, nobody knows
	case err != nil:
		return fmt.Errorf("look for mounts: %w", err)
	case len(found) > 0:
		return fmt.Errorf("something is mounted at %s: unmount it first", found[0].Mountpoint)
	}
	return nil
}
