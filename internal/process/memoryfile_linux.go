package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile makes a file that no listing of files or processes shows and that
// takes any length without a reader.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
