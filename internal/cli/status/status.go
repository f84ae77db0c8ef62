// Package status holds the commands that explain the state of tasks: status and why.
package status

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/session"
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
				views = current(views)
			}
			if asJSON {
				for i := range views {
					next := control.NextOf(views[i])
					if views[i] = views[i].Shown(); views[i].Status == session.Damaged {
						views[i].Next = next
					}
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

// manyEnded is how many of the sessions that are over status shows.
const manyEnded = 10

// current returns the open sessions and the newest of those that are over.
func current(views []session.View) []session.View {
	kept, ended := []session.View{}, 0
	for _, v := range views {
		if !v.Ended.IsZero() && v.Status != session.Blocked {
			if ended++; ended > manyEnded {
				continue
			}
		}
		kept = append(kept, v)
	}
	return kept
}
