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
