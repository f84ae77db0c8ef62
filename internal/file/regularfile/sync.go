package regularfile

import (
	"errors"
	"os"
)

// SyncDir commits the entries of a directory to disk, as Sync does for the content of a
// file.
func SyncDir(path string) error { return syncAt(path, (*os.File).Sync) }

// SyncFS commits everything that was written to the file system of a directory to disk.
func SyncFS(path string) error { return syncAt(path, syncFS) }

func syncAt(path string, sync func(*os.File) error) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(sync(dir), dir.Close())
}
