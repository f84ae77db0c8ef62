// Package early makes a program the launcher command before the rest of the program is set up.
//
// Go initializes a package as soon as those that it imports are initialized, and of several that
// could be next the one whose path is the first in the alphabet. This package imports little, so it
// is initialized before most of coven's other packages and libraries. A task starts the launcher at
// least twice, and their tables and regular expressions would take it longer than its own work.
package early

import (
	"os"

	"github.com/coven-run/coven/internal/process"
)

func init() { //nolint:gochecknoinits // main comes after all other packages
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
}
