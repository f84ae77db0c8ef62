package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/runner"
)

func newApprove(a *app) *cobra.Command {
	var accept bool
	cmd := &cobra.Command{
		Use:   "approve TASK",
		Short: "Approve a change that waits for review, and land it",
		Long: `Approve a change that waits for review, and land it. A change with open error
findings lands only with --accept-findings: the record says who accepted which.
coven review TASK shows them.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.atDesk(cmd.Context(), func(d *desk) error { return approve(cmd.Context(), d, args[0], accept) })
		},
	}
	cmd.Flags().BoolVar(&accept, "accept-findings", false, "accept the open error findings of the change")
	return cmd
}

func approve(ctx context.Context, d *desk, id string, accept bool) error {
	v, err := d.find(id)
	if err != nil {
		return err
	}
	if v.Status != session.Waiting || v.Reason != "review" || v.Review == nil {
		return missing("coven why "+shellWord(id), "task %s does not wait for a review: it is %s", id, stateText(v))
	}
	if len(v.Open) > 0 && !accept {
		return missing(acceptCommand(v), "%s", unaccepted(v))
	}
	return outcome(d.approveNow(ctx, v, v.Review.Patch))
}

// acceptCommand approves a change together with its open error findings.
func acceptCommand(v session.View) string {
	return "coven approve " + shellWord(v.Task) + " --accept-findings"
}

// unaccepted says why a change with open error findings is not approved, and names
// the findings.
func unaccepted(v session.View) string {
	noun := "findings"
	if len(v.Open) == 1 {
		noun = "finding"
	}
	return fmt.Sprintf("task %s has %d open error %s; without --accept-findings it does not land:\n%s",
		v.Task, len(v.Open), noun, openLines(v.Open))
}

// maxOpenLines is how many open findings a message lists.
const maxOpenLines = 20

// openLines lists open error findings, one per line, for a terminal.
func openLines(open []event.Finding) string {
	var lines []string
	for _, f := range open[:min(maxOpenLines, len(open))] {
		lines = append(lines, "  "+printable(findings.Line(f))+" ("+printable(f.Reviewer)+")")
	}
	if more := len(open) - maxOpenLines; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// outcome is the exit of a command that ran one session.
func outcome(e runner.Outcome, err error) error {
	if err != nil {
		return err
	}
	return status(exitOf(e))
}

// atDesk opens the repository and what runs tasks for one command. The command
// asks no questions.
func (a *app) atDesk(ctx context.Context, do func(*desk) error) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	e, err := h.start()
	if err != nil {
		return err
	}
	defer e.close()
	d := &desk{house: h, engine: e, screen: a.screen(false, terminal.Lines)}
	defer d.screen.Close()
	return do(d)
}

// find returns the newest session of a task.
func (d *desk) find(id string) (session.View, error) { return d.house.find(id) }

func (h *house) find(id string) (session.View, error) {
	v, err := session.OfTask(h.repo.Root, id)
	if errors.Is(err, session.ErrNone) {
		return v, missing("coven status", "task %s has no session", id)
	}
	return v, err
}

// stateText is a session's state in words: waiting (review).
func stateText(v session.View) string {
	v = v.Shown()
	if v.Reason != "" {
		return v.Status + " (" + v.Reason + ")"
	}
	return v.Status
}
