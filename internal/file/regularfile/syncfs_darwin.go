package regularfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncFS commits everything that was written to the file system of a directory to disk.
func SyncFS(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	_ = unix.Sync() // starts writing
	if _, err = unix.FcntlInt(dir.Fd(), unix.F_FULLFSYNC, 0); err != nil {
		err = &os.PathError{Op: "fcntl", Path: path, Err: err}
	}
	return errors.Join(err, dir.Close())
}
