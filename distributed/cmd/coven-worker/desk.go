package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/coven-run/coven/distributed/connect"
	"github.com/coven-run/coven/distributed/desk"
	"github.com/coven-run/coven/distributed/server"
	"github.com/coven-run/coven/distributed/session"
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

// newList returns the command that lists the sessions and the machines.
func newList(on *string) *cobra.Command {
	var dir, remote string
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions of this repository that machines run, or that wait", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			name, err := repository(ctx, dir, remote)
			if err != nil {
				return err
			}
			c, err := connect.Dial(ctx, *on, "list")
			if err != nil {
				return err
			}
			defer c.Close()
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			query := fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH %q", session.Name, name+"/")
			var page []byte
			for more := true; more; more = len(page) > 0 {
				found, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
				if err != nil {
					return err
				}
				for _, one := range found.Executions {
					memo := map[string]string{}
					for key, value := range one.GetMemo().GetFields() {
						var text string
						if converter.GetDefaultDataConverter().FromPayload(value, &text) == nil {
							memo[key] = text
						}
					}
					state := memo["status"]
					if memo["reason"] != "" {
						state += " (" + memo["reason"] + ")"
					}
					fmt.Fprintf(table, "%s\t%s\t%s\tsince %s\n", one.Execution.WorkflowId[len(name)+1:], state, memo["machine"], one.StartTime.AsTime().Local().Format(time.DateTime)) //nolint:errcheck // flushed below
				}
				page = found.NextPageToken
			}
			return table.Flush()
		},
	}
	cmd.Flags().StringVar(&dir, "repository", ".", "the `DIRECTORY` of the clone")
	cmd.Flags().StringVar(&remote, "remote", "origin", "the git `REMOTE` that keeps the sessions")
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
