// Command zoo is a plugin that violates the rules for plugins: it hangs, floods,
// crashes, lies and leaves processes and files behind. Its behavior depends on the
// name of the program, coven-reviewer-<beast> or coven-arbiter-<beast>; "well" is the
// beast that behaves. Built with -ldflags "-X main.called=NAME", it is that beast
// under any name. Package plugins tests its host with it.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins"
)

// called overrides the name of the program.
var called string

func main() {
	if len(os.Args) == 2 && descend(os.Args[1]) {
		return
	}
	name := filepath.Base(os.Args[0])
	if called != "" {
		name = called
	}
	beast := strings.TrimPrefix(name, "coven-reviewer-")
	switch {
	case judges[strings.TrimPrefix(name, "coven-arbiter-")] != nil:
		plugins.Serve(plugins.Arbiter(judges[strings.TrimPrefix(name, "coven-arbiter-")]))
	case drives[strings.TrimPrefix(name, "coven-provider-")] != nil:
		plugins.Serve(plugins.Provider(drives[strings.TrimPrefix(name, "coven-provider-")]))
	case name == "coven-model-quits":
		plugins.Serve(plugins.Model(quitter{}))
	case name == "coven-forge-liar":
		plugins.Serve(plugins.Forge(liar{}))
	case greet(beast):
	case reviews[beast] != nil:
		plugins.Serve(plugins.Reviewer(reviews[beast]))
	case raws[beast] != nil:
		raws[beast]()
	default:
		fmt.Fprintf(os.Stderr, "the zoo has no beast %q\n", beast)
		os.Exit(1)
	}
	if beast == "stubborn" || beast == "hermit" { // they ignore the request to exit
		hang()
	}
}

// hang waits without end. Go reports a select without cases as a deadlock if nothing else can wake the
// process.
func hang() { <-time.After(math.MaxInt64) }
