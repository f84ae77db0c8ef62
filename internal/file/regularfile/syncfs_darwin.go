package regularfile

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncFS(dir *os.File) error {
	_ = unix.Sync()   // starts writing
	return dir.Sync() // F_FULLFSYNC, which waits for all earlier writes
}
