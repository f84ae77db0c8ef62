package regularfile

import (
	"errors"
	"os"
)

// SyncDir commits the entries of a directory to disk, as Sync does for the content of a
// file.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
