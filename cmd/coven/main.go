// Command coven turns tasks into merged, verified changes with coding agents.
//
// This package parses, wires the parts together and prints; it is the only one
// that knows all of them. There is one file per command.
package main

import (
	"os"

	"github.com/coven-run/coven/internal/process"
)

func main() {
	// Every child is started through the launcher: it does not wait for the
	// rest of the program to be set up.
	if len(os.Args) > 1 && os.Args[1] == "exec" {
		os.Exit(process.Main(os.Args[2:]))
	}
	os.Exit(run(newApp(version), os.Args[1:]))
}

// version is set when a release is built.
var version = "dev"
