package file

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// A Stamp identifies the state of a file. It is zero if the file does not exist.
type Stamp struct {
	inode uint64
	size  int64
	mtime int64 // nanoseconds since 1970
}

// StampOf returns the current state of a file.
func StampOf(file string) Stamp {
	info, err := os.Stat(file)
	if err != nil {
		return Stamp{}
	}
	return Stamp{inode: InodeOf(info), size: info.Size(), mtime: info.ModTime().UnixNano()}
}

// Modified returns the modification time.
func (s Stamp) Modified() time.Time { return time.Unix(0, s.mtime) }

// InodeOf returns the inode of a file, or 0 if it is not available.
func InodeOf(info fs.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return sys.Ino
	}
	return 0
}

// DeviceOf returns the number of the file system of a file, or 0 if it is not available.
func DeviceOf(info fs.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Dev) //nolint:unconvert // the type depends on the system
	}
	return 0
}
