package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile creates a file in memory, of any length, which appears in no list of files or
// processes.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
