package setup

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// NewVersion returns the command coven version.
func NewVersion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of coven", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.Printf("%s\n", VersionText(a))
		},
	}
}

// VersionText returns the version of coven, in one line.
func VersionText(a *cli.App) string {
	return fmt.Sprintf("coven %s%s %s %s/%s", a.Version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// revision returns the commit that this binary was built from, if Go recorded it in the build settings or
// at the end of a pseudo-version.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	if found := pseudo.FindStringSubmatch(info.Main.Version); found != nil {
		return " (" + found[1] + ")"
	}
	return ""
}

// pseudo matches the end of a pseudo-version, with the commit.
var pseudo = lazyregexp.New(`\d{14}-([0-9a-f]{12})$`)
