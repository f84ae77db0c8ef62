package memoryfile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// New creates a file in memory, of any length, which appears in no list of files or
// processes.
func New(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
