// Command man writes the man pages of all coven commands into a directory: make man.
package main

import (
	"fmt"
	"os"

	"github.com/coven-run/coven/internal/cli/root"
	"github.com/coven-run/coven/internal/manual"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIR")
		os.Exit(2)
	}
	n, err := manual.WriteMan(root.NewRoot(root.NewApp("")), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
	fmt.Printf("wrote %d man pages to %s\n", n, os.Args[1])
}
