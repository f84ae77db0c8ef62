package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
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
	v, err := d.house.find(id)
	if err != nil {
		return err
	}
	if v.Status != session.Waiting || v.Reason != event.WaitReview || v.Review == nil {
		return missing("coven why "+shellWord(id), "task %s does not wait for a review: it is %s", id, stateText(v))
	}
	if len(v.Open) > 0 && !accept {
		return missing(acceptCommand(v), "%s", unaccepted(v))
	}
	return outcome(d.approveNow(ctx, v, v.Review.Patch))
}

// outcome is the exit of a command that ran one session.
func outcome(e runner.Ending, err error) error {
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
	d, err := h.desk()
	if err != nil {
		return err
	}
	defer d.close()
	defer a.watch(d, false, terminal.Lines)()
	return do(d)
}

// watch shows on the terminal what a desk does, until stop is called.
func (a *app) watch(d *desk, asJSON bool, draw func(event.Event) string) (stop func()) {
	a.shown = &display{Screen: a.screen(asJSON, draw), json: asJSON}
	d.parking = a.parking
	d.ask = func(ctx context.Context, needs []plugins.Need) (err error) {
		if gaveUp := a.shown.Alone(ctx, func() { err = a.admitPlugins(ctx, d.house, needs) }); gaveUp != nil {
			return gaveUp
		}
		return err
	}
	d.observer = observer{
		event: a.shown.See,
		ended: func(s stretch) {
			_ = a.tell("%s\n  session: %s\n", printableLines(endText(s)), session.Dir+"/"+s.session) // there is nobody else to tell
		},
		notice: func(n notice) { _ = a.tell("%s", noticeText(n)) }, // there is nobody else to tell
	}
	return a.shown.Close
}

// noticeText is a notice for a terminal.
func noticeText(n notice) string {
	text := printable(n.text)
	if n.task != "" {
		text = printable(n.task) + "  " + text
	}
	if n.next != "" {
		text += "\n  next: " + printable(n.next)
	}
	return text + "\n"
}

// display is where tasks at work are shown.
type display struct {
	*terminal.Screen
	json bool // as events, and nothing else
}

// endText says how a session ended.
func endText(s stretch) string {
	var b strings.Builder
	e := s.ending
	fmt.Fprintf(&b, "%s  %s", s.task, e.Status)
	if e.Reason != "" {
		fmt.Fprintf(&b, " (%s)", e.Reason)
	}
	switch {
	case e.Status == runner.Completed && e.Commit != "":
		fmt.Fprintf(&b, ": landed %.10s%s", e.Commit, colon(e.Summary))
	case e.Status == runner.Completed:
		fmt.Fprintf(&b, ": nothing changed%s", colon(e.Summary))
	case e.Detail != "":
		fmt.Fprintf(&b, ": %s", oneLine(e.Detail))
	}
	if e.Next != "" {
		fmt.Fprintf(&b, "\n  next: %s", e.Next)
	}
	return b.String()
}
