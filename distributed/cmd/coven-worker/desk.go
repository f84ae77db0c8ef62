package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/coven-run/coven/distributed/connect"
	"github.com/coven-run/coven/distributed/desk"
	"github.com/coven-run/coven/distributed/server"
)

// heartbeatVariable is the environment variable with the default of --heartbeat of the desk, which coven starts without flags.
const heartbeatVariable = "COVEN_WORKER_HEARTBEAT"

// patience is how long the desk waits for a server that does not answer at first, because it is being restarted.
const patience = 10 * time.Second

// newDesk returns the command that coven starts for coven run --on.
func newDesk(on *string) *cobra.Command {
	var heartbeat time.Duration
	cmd := &cobra.Command{
		Use: "desk", Short: "Hand sessions out for coven run --on, which starts this command", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			waiting, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			c, err := dial(waiting, *on, "desk", nil, func(error) {})
			if err != nil {
				return err
			}
			defer c.Close()
			d := &desk.Desk{Client: c, Heartbeat: heartbeat, Repository: func(remote string) (string, error) { return repository(ctx, ".", remote) }}
			return d.Serve(ctx, os.Stdin, os.Stdout)
		},
	}
	usual := 30 * time.Second
	if set, err := time.ParseDuration(os.Getenv(heartbeatVariable)); err == nil && set > 0 {
		usual = set
	}
	cmd.Flags().DurationVar(&heartbeat, "heartbeat", usual, "a machine that is silent for this `DURATION` is lost")
	return cmd
}

// newNamespace returns the command that makes the namespace.
func newNamespace(on *string) *cobra.Command {
	return &cobra.Command{
		Use: "namespace", Short: "Make the namespace on the server, once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			options, err := connect.Options(*on, "namespace")
			if err != nil {
				return err
			}
			c, err := client.DialContext(ctx, options)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := server.Register(ctx, c, options.Namespace); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "namespace %s on %s\n", options.Namespace, options.HostPort) //nolint:errcheck // informal
			return nil
		},
	}
}
