package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut writes the content of a file to disk, like git with core.fsyncMethod=writeout-only. The ref
// transaction that makes the object reachable flushes the disk.
func writeOut(f *os.File) error {
	err := unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	if err != nil { // some file systems do not support it
		return f.Sync()
	}
	return nil
}

// bcachefsMagic is the type of a bcachefs, see statfs(2).
const bcachefsMagic = 0xca451a4e

// writesUnordered reports whether a file that is synced can be on disk before files that were created earlier.
func writesUnordered(dir string) (bool, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return false, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	kind := uint32(disk.Type)
	return kind == unix.BTRFS_SUPER_MAGIC || kind == bcachefsMagic, nil
}
