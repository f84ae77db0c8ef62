//go:build race

package main

import (
	"os"
	"syscall"
)

// The race detector waits a second at each exit, and what coven starts with an
// environment of its own does not hear that it need not: it tells itself.
func init() {
	const options = "GORACE"
	if os.Getenv(options) == "" {
		_ = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), options+"=atexit_sleep_ms=0")) // else it is slow
	}
}
