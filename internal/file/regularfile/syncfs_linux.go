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
	if err = unix.Syncfs(int(dir.Fd())); err != nil {
		err = &os.PathError{Op: "syncfs", Path: path, Err: err}
	}
	return errors.Join(err, dir.Close())
}
