// Package fleet implements coven worker, which starts the program coven-worker.
package fleet

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/fleet"
)

// NewWorker returns the command coven worker.
func NewWorker(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "worker --on HOST:PORT [-j N]",
		Short: "Run sessions of other machines here, which a server hands out",
		Long: `Run sessions that other machines hand out with coven run --on, in this clone of the
repository. The server is Temporal. coven starts the program coven-worker, which is
installed separately:

  go install github.com/coven-run/coven/distributed/cmd/coven-worker@latest

coven worker --help shows the help of coven-worker, once it is installed.`,
		Example: `  coven worker --on temporal.example.com:7233 -j 4
  coven worker list --on temporal.example.com:7233`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return fleet.Worker(cmd.Context(), a.Self, args)
		},
	}
}
