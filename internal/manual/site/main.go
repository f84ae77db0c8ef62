// Command site writes coven's documentation as a static site with a search into a directory: make docs. The
// site needs no server and no network.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site REPOSITORY DIR")
		os.Exit(2)
	}
	n, err := write(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("wrote %d pages to %s\n", n, os.Args[2])
}
