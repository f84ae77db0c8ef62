package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Move renames a file or directory. It fails with fs.ErrExist if the new name exists, even as an empty directory, where the file
// system can tell.
func Move(from, to string) error {
	err := renameNew(from, to)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP) {
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}
