// Command zoo is a plugin that does what a plugin must not: it hangs, floods,
// crashes, lies and leaves things behind. What it does hangs on the name it is
// called by, coven-reviewer-<beast>, so one program is all of them; "well" is the
// beast that behaves. Package plugins tests its host with it, and it shows what a
// host must bear.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/plugins"
)

func main() {
	if len(os.Args) == 2 && descend(os.Args[1]) {
		return
	}
	name := filepath.Base(os.Args[0])
	beast := strings.TrimPrefix(name, "coven-reviewer-")
	switch {
	case name == "coven-arbiter-well":
		plugins.Serve(plugins.Arbiter(judge{}))
	case name == "coven-model-quits":
		plugins.Serve(plugins.Model(quitter{}))
	case greet(beast):
	case reviews[beast] != nil:
		plugins.Serve(plugins.Reviewer(reviews[beast]))
	case raws[beast] != nil:
		raws[beast]()
	default:
		fmt.Fprintf(os.Stderr, "the zoo has no beast %q\n", beast)
		os.Exit(1)
	}
	if beast == "stubborn" || beast == "hermit" { // they were asked to end
		select {}
	}
}
