//go:build race

package main

import (
	"os"
	"syscall"
)

// racing reports whether the race detector is enabled.
const racing = true

// The race detector waits a second at each exit unless GORACE disables it. Processes that coven starts with
// their own environment do not inherit GORACE, so each process sets it for itself. The launcher does not
// wait.
func init() {
	const options = "GORACE"
	if launcher := len(os.Args) > 1 && os.Args[1] == "exec"; os.Getenv(options) == "" && !launcher {
		_ = syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), options+"=atexit_sleep_ms=0")) // else it is slow
	}
}
