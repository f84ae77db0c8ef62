package event

import "os"

// datasync waits until the data of f are on disk. macOS has no fdatasync, and its
// fsync leaves data in the drive's cache. Sync uses F_FULLFSYNC.
func datasync(f *os.File) error { return f.Sync() }
