package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/coven-run/coven/distributed/connect"
	"github.com/coven-run/coven/distributed/session"
)

// newList returns the command that lists the sessions and the machines.
func newList(on *string) *cobra.Command {
	var dir, remote string
	cmd := &cobra.Command{
		Use: "list", Short: "List the sessions of this repository that machines run, or that wait, and the machines", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			of, err := repository(ctx, dir, remote)
			if err != nil {
				return err
			}
			c, err := connect.Dial(ctx, *on, "list")
			if err != nil {
				return err
			}
			defer c.Close()
			l := &list{client: c, repository: of, queues: map[string][]poller{}}
			if path, err := findCoven(""); err == nil { // its queues have machines, even without sessions
				for _, plan := range plansOf(ctx, dir, path) {
					if _, err := l.pollers(ctx, session.Queue(of.Name, plan, "")); err != nil {
						return err
					}
				}
			}
			return l.print(ctx, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&dir, "repository", ".", "the `DIRECTORY` of the clone")
	cmd.Flags().StringVar(&remote, "remote", "origin", "the git `REMOTE` that keeps the sessions")
	return cmd
}

// A list has the sessions and the machines of a repository, as the server knows them.
type list struct {
	client     client.Client
	repository session.Repository
	queues     map[string][]poller // those that were asked for
}

// A poller is a machine that has asked a queue for sessions in the last minutes.
type poller struct {
	machine string
	last    time.Time
}

// lost is the age of the last poll of a machine that is no longer there: a poll lasts for a minute.
const lost = 2 * time.Minute

// pollers returns the machines of a queue. It asks the server once for each queue.
func (l *list) pollers(ctx context.Context, queue string) ([]poller, error) {
	if known, ok := l.queues[queue]; ok {
		return known, nil
	}
	kind := enumspb.TASK_QUEUE_TYPE_WORKFLOW // machines poll it even while all their places are taken
	if strings.Contains(l.served(queue), "/") {
		kind = enumspb.TASK_QUEUE_TYPE_ACTIVITY
	}
	found, err := l.client.DescribeTaskQueue(ctx, queue, kind)
	if err != nil {
		return nil, err
	}
	var all []poller
	for _, p := range found.GetPollers() {
		all = append(all, poller{machine: p.GetIdentity(), last: p.GetLastAccessTime().AsTime()})
	}
	slices.SortFunc(all, func(a, b poller) int { return cmp.Compare(a.machine, b.machine) })
	l.queues[queue] = all
	return all, nil
}

// served returns the name of a queue in the list: plan-3, or plan-3/LABEL.
func (l *list) served(queue string) string {
	return l.without(session.Readable(queue), "coven/")
}

// without returns a name without a prefix and the repository.
func (l *list) without(name, prefix string) string {
	for _, repository := range l.repository.Names() {
		name = strings.TrimPrefix(name, prefix+repository+"/")
	}
	return name
}

// print prints the sessions, and then the machines.
func (l *list) print(ctx context.Context, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var of []string
	for _, name := range l.repository.Names() {
		of = append(of, fmt.Sprintf("WorkflowId STARTS_WITH %q", session.Plain(name+"/")))
	}
	query := fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running' AND (%s)", session.Name, strings.Join(of, " OR "))
	var page []byte
	for more := true; more; more = len(page) > 0 {
		found, err := l.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return err
		}
		for _, one := range found.Executions {
			line, err := l.session(ctx, one)
			if err != nil {
				return err
			}
			fmt.Fprintln(table, line) //nolint:errcheck // flushed below
		}
		page = found.NextPageToken
	}
	for _, queue := range slices.Sorted(maps.Keys(l.queues)) {
		for _, p := range l.queues[queue] {
			fmt.Fprintf(table, "machine %s\tserves %s\t\tlast poll %s\n", p.machine, l.served(queue), p.last.Local().Format(time.DateTime)) //nolint:errcheck // flushed below
		}
	}
	return table.Flush()
}

// session returns the line of a session.
func (l *list) session(ctx context.Context, one *workflow.WorkflowExecutionInfo) (string, error) {
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
	queue := one.GetTaskQueue()
	if needs := memo["needs"]; needs != "" {
		queue += session.Plain("/" + needs)
	}
	machines, err := l.pollers(ctx, queue)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(machines, func(p poller) bool { return time.Since(p.last) < lost }) {
		state += ": no machine serves " + l.served(queue)
	}
	return fmt.Sprintf("%s\t%s\t%s\tsince %s", l.without(session.Readable(one.Execution.WorkflowId), ""), state, memo["machine"], one.StartTime.AsTime().Local().Format(time.DateTime)), nil
}
