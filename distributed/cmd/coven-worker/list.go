package main

import (
	"context"
	"encoding/json"
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
	var asJSON bool
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
					if _, err := l.pollers(ctx, session.Queue(of, plan, "")); err != nil {
						return err
					}
				}
			}
			all, err := l.read(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(all)
			}
			return all.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&dir, "repository", ".", "the `DIRECTORY` of the clone")
	cmd.Flags().StringVar(&remote, "remote", "origin", "the git `REMOTE` that keeps the sessions")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// A list has the sessions and the machines of a repository, as the server knows them.
type list struct {
	client     client.Client
	repository string
	queues     map[string][]poller // those that were asked for
}

// A poller is a machine that has asked a queue for sessions in the last minutes.
type poller struct {
	machine string
	last    time.Time
}

// lost is the age of the last poll of a machine that is no longer there: a poll lasts for a minute.
const lost = 2 * time.Minute

// pollers returns the machines of a queue. It asks the server once for each queue. Machines poll for workflows even while all their places are taken; those of earlier
// versions do not do so for a label.
func (l *list) pollers(ctx context.Context, queue string) ([]poller, error) {
	if known, ok := l.queues[queue]; ok {
		return known, nil
	}
	last := map[string]time.Time{}
	for _, kind := range []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW, enumspb.TASK_QUEUE_TYPE_ACTIVITY} {
		found, err := l.client.DescribeTaskQueue(ctx, queue, kind)
		if err != nil {
			return nil, err
		}
		for _, p := range found.GetPollers() {
			if at := p.GetLastAccessTime().AsTime(); at.After(last[p.GetIdentity()]) {
				last[p.GetIdentity()] = at
			}
		}
	}
	var all []poller
	for _, machine := range slices.Sorted(maps.Keys(last)) {
		all = append(all, poller{machine, last[machine]})
	}
	l.queues[queue] = all
	return all, nil
}

// served returns the name of a queue in the list: plan-3, or plan-3/LABEL.
func (l *list) served(queue string) string {
	return strings.TrimPrefix(session.Readable(queue), "coven/"+l.repository+"/")
}

// listing is the output of list --json.
type listing struct {
	Sessions []listed        `json:"sessions"`
	Machines []listedMachine `json:"machines"`
}

// listed is a session that a machine runs, or that waits.
type listed struct {
	Task    string    `json:"task"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Machine string    `json:"machine,omitempty"`
	Label   string    `json:"label,omitempty"` // of the machines that may run it
	Queue   string    `json:"queue"`           // plan-3, or plan-3/LABEL
	Served  bool      `json:"served"`          // by a machine
	Since   time.Time `json:"since"`
}

// listedMachine is a machine that serves a queue.
type listedMachine struct {
	Name  string    `json:"name"`
	Queue string    `json:"queue"`
	Last  time.Time `json:"last_poll"`
}

// read returns the sessions and the machines.
func (l *list) read(ctx context.Context) (listing, error) {
	all := listing{Sessions: []listed{}, Machines: []listedMachine{}}
	query := fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH %q", session.Name, session.Plain(l.repository)+"/")
	var page []byte
	for more := true; more; more = len(page) > 0 {
		found, err := l.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: page})
		if err != nil {
			return all, err
		}
		for _, one := range found.Executions {
			s, err := l.session(ctx, one)
			if err != nil {
				return all, err
			}
			all.Sessions = append(all.Sessions, s)
		}
		page = found.NextPageToken
	}
	for _, queue := range slices.Sorted(maps.Keys(l.queues)) {
		for _, p := range l.queues[queue] {
			all.Machines = append(all.Machines, listedMachine{Name: p.machine, Queue: l.served(queue), Last: p.last})
		}
	}
	return all, nil
}

// session returns a session.
func (l *list) session(ctx context.Context, one *workflow.WorkflowExecutionInfo) (listed, error) {
	memo := map[string]string{}
	for key, value := range one.GetMemo().GetFields() {
		var text string
		if converter.GetDefaultDataConverter().FromPayload(value, &text) == nil {
			memo[key] = text
		}
	}
	queue := one.GetTaskQueue()
	if needs := memo["needs"]; needs != "" {
		queue += "/" + session.Plain(needs)
	}
	machines, err := l.pollers(ctx, queue)
	return listed{
		Task: strings.TrimPrefix(session.Readable(one.Execution.WorkflowId), l.repository+"/"), Status: memo["status"], Reason: memo["reason"], Machine: memo["machine"], Label: memo["needs"], Queue: l.served(queue),
		Served: slices.ContainsFunc(machines, func(p poller) bool { return time.Since(p.last) < lost }), Since: one.StartTime.AsTime(),
	}, err
}

// print prints the sessions, and then the machines.
func (all listing) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range all.Sessions {
		state := s.Status
		if s.Reason != "" {
			state += " (" + s.Reason + ")"
		}
		if !s.Served {
			state += ": no machine serves " + s.Queue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\tsince %s\n", s.Task, state, printable(s.Machine), s.Since.Local().Format(time.DateTime)) //nolint:errcheck // flushed below
	}
	for _, m := range all.Machines {
		fmt.Fprintf(table, "machine %s\tserves %s\t\tlast poll %s\n", printable(m.Name), m.Queue, m.Last.Local().Format(time.DateTime)) //nolint:errcheck // flushed below
	}
	return table.Flush()
}

// printable returns a name that another machine has given itself, for people.
func printable(name string) string { return session.Readable(session.Plain(name)) }
