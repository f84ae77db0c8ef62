// Package early runs the launcher command before the rest of the program is initialized.
//
// Go initializes a package as soon as the packages that it imports are initialized. If several are ready,
// it starts with the first path in alphabetical order. This package imports little, so it
// is initialized before most of coven's other packages and libraries. A task starts the launcher at
// least twice, and initializing their tables and regular expressions would take longer than its own work.
package early

import (
	"os"

	"github.com/coven-run/coven/internal/process"
)

func init() { //nolint:gochecknoinits // main runs after all packages are initialized
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
}
