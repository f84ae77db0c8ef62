// Command coven turns tasks into merged, verified changes with coding agents.
//
// This package parses, wires the parts together and prints; it is the only one
// that knows all of them. There is one file per command.
package main

import (
	"os"

	"github.com/coven-run/coven/internal/cli/root"
	_ "github.com/coven-run/coven/internal/process/early" // handles coven exec
)

func main() {
	os.Exit(root.Run(root.NewApp(version), os.Args[1:]))
}

// version is set when a release is built.
var version = "dev"
