package regularfile

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncFS(dir *os.File) error {
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: dir.Name(), Err: err}
	}
	return nil
}
