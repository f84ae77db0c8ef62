package git

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut starts writing the content of a file to disk, like git with core.fsyncMethod=writeout-only. The
// ref transaction that makes the object reachable flushes the disk.
func writeOut(f *os.File) error { return unix.Fsync(int(f.Fd())) }

// writesUnordered returns false: APFS writes changes in order.
func writesUnordered(string) (bool, error) { return false, nil }
