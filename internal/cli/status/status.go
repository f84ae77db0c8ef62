// Package status holds the commands that explain the state of tasks: status and why.
package status

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
)

// NewStatus returns the command coven status.
func NewStatus(a *cli.App) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show sessions and the next command for each",
		Long:  "Show all open sessions and the last ten that ended (--all: every session). coven need not be running.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			views, err := control.Sessions(p)
			if err != nil {
				return err
			}
			if !all {
				views = control.Current(views)
			}
			if asJSON {
				for i := range views {
					views[i] = control.Shown(views[i])
				}
				return a.PrintJSON(views)
			}
			return a.StatusTable(views)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "show every session")
	return cmd
}
