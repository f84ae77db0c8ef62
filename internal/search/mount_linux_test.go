package search_test

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// mountSmall mounts a file system with a size in bytes on a directory until the test ends.
func mountSmall(t *testing.T, dir string, size int) error {
	t.Helper()
	if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return nil
}
