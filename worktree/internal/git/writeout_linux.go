package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut hands the content of a file to the disk, as git does with
// core.fsyncMethod=writeout-only. The transaction that names the object makes the disk keep it.
func writeOut(f *os.File) error {
	err := unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
	if err != nil { // not every file system can
		return f.Sync()
	}
	return nil
}
