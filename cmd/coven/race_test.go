//go:build race

package main

import (
	"os"
	"syscall"
)

// racing means that the race detector looks.
const racing = true

// The race detector waits a second at each exit, and what coven starts with an
// environment of its own does not hear that it need not: it tells itself. The launcher does not
// wait.
func init() {
	const options = "GORACE"
	if launcher := len(os.Args) > 1 && os.Args[1] == "exec"; os.Getenv(options) == "" && !launcher {
		_ = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), options+"=atexit_sleep_ms=0")) // else it is slow
	}
}
