// Command coven turns tasks into merged, verified changes with coding agents.
//
// This package only starts the command line, which is in internal/cli/root.
package main

import (
	"os"
	"runtime/debug"

	"github.com/coven-run/coven/internal/cli/root"
	_ "github.com/coven-run/coven/internal/process/early" // handles coven exec
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// heapGrowth is the growth of the heap, in percent, after which garbage is collected. With 400, most processes of coven end before the first collection. With Go's
// default of 100, a task needs some 5% more processor time.
const heapGrowth = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	os.Exit(root.Run(root.NewApp(versionOf(debug.ReadBuildInfo())), os.Args[1:]))
}

// version is the version of this source code.
const version = "v0.1.0"

// released matches the versions of releases. A pseudo-version does not match: it ends with a
// timestamp and a commit.
var (
	released = lazyregexp.New(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	pseudo   = lazyregexp.New(`-(.*\.)?\d{14}-[0-9a-f]{12}$`)
)

// versionOf returns the version of the release that go install built, or else that of the source code.
func versionOf(info *debug.BuildInfo, ok bool) string {
	if ok && released.MatchString(info.Main.Version) && !pseudo.MatchString(info.Main.Version) {
		return info.Main.Version
	}
	return version
}
