package run

import (
	"fmt"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/fleet"
)

// NewWorker returns the command coven worker, which starts the program coven-worker.
func NewWorker(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "worker --on HOST:PORT [-j N]",
		Short: "Run sessions of other machines here, which a server hands out",
		Long: `Run sessions in this clone of the repository that other machines hand out with
coven run --on. The server is Temporal. This starts the program coven-worker, which is
installed separately:

  go install github.com/coven-run/coven/distributed/cmd/coven-worker@latest

Once it is installed, coven worker --help shows its help.`,
		Example: `  coven worker --on temporal.example.com:7233 -j 4
  coven worker list --on temporal.example.com:7233`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			program, err := fleet.Command(cmd.Context(), a.Self, args...)
			if help := cli.ShowHelp; err != nil && len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return help(cmd, nil)
			}
			if err != nil {
				return err
			}
			return fmt.Errorf("%s: %w", program.Path, syscall.Exec(program.Path, program.Args, a.Environ())) // it returns only errors
		},
	}
}
