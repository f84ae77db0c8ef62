package setup

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// NewVersion returns the command coven version.
func NewVersion(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of coven", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				return a.Printf("%s\n", VersionText(a))
			}
			line, err := json.Marshal(version{Version: a.Version, Plans: []int{grimoires.PlanVersion}})
			if err != nil {
				return err
			}
			return a.Printf("%s\n", line)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// version is the output of coven version --json.
type version struct {
	Version string `json:"version"`
	Plans   []int  `json:"plans"` // versions of plans whose sessions this coven can continue
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
