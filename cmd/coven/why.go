package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

func newWhy(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why TASK",
		Short: "Say why a task is where it is, and the one command that goes on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			r, err := h.why(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.sayJSON(r)
			}
			return a.say("%s\n", printableLines(r.text()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// reason is why a task is where it is.
type reason struct {
	Task   string `json:"task"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Next   string `json:"next,omitempty"`
}

func (r reason) text() string {
	text := fmt.Sprintf("%s  %s: %s", r.Task, r.State, r.Reason)
	if r.Next != "" {
		text += "\n  next: " + r.Next
	}
	return text
}

func (h *house) why(ctx context.Context, id string) (reason, error) {
	v, err := session.OfTask(h.repo.Root, id)
	switch {
	case errors.Is(err, session.ErrNone):
		return h.whyTask(ctx, id)
	case err != nil:
		return reason{}, err
	}
	r := reason{Task: id, State: stateText(v), Reason: oneLine(v.Detail), Next: nextOf(v)}
	switch v.Status {
	case session.Running:
		r.Reason, r.Next = "at work: "+v.At(), "coven logs -f "+shellWord(id)
	case session.Completed:
		r.Reason, r.Next = "nothing changed: "+oneLine(v.Summary), "coven run "+shellWord(id)
		if v.Commit != "" {
			r.Reason, r.Next = "landed as "+v.Commit+": "+oneLine(v.Summary), "git show "+v.Commit
		}
	case session.Failed, session.Cancelled:
		r.Next = "coven run " + shellWord(id)
	}
	return r, nil
}

// whyTask explains a task that was never run.
func (h *house) whyTask(ctx context.Context, id string) (reason, error) {
	tracker, err := h.tasks()
	if err != nil {
		return reason{}, err
	}
	t, err := tracker.Get(ctx, id)
	if err != nil {
		return reason{}, err
	}
	ready, err := tracker.Ready(ctx)
	if err != nil {
		return reason{}, err
	}
	r := reason{Task: id, State: t.Status}
	for _, other := range ready {
		if other.ID == id {
			r.State, r.Reason, r.Next = "queued", "ready: nothing holds it back", "coven run "+shellWord(id)
			return r, nil
		}
	}
	r.Reason, r.Next = h.holdup(ctx, tracker, t)
	return r, nil
}

// holdup says what keeps a task from being ready.
func (h *house) holdup(ctx context.Context, tracker task.Tracker, t task.Task) (why, next string) {
	blockers, err := tracker.Blockers(ctx, t.ID)
	switch {
	case t.Status == "closed":
		return "closed: " + oneLine(t.CloseReason), "coven task show " + shellWord(t.ID)
	case err == nil && len(blockers) > 0:
		return "depends on " + strings.Join(blockers, ", "), "coven run " + shellWord(blockers[0])
	case h.abandoned(t.Assignee):
		return "claimed by a run that was cut off", "coven run " + shellWord(t.ID)
	case t.Assignee != "":
		return "assigned to " + t.Assignee, "coven task show " + shellWord(t.ID)
	}
	return "the tracker says " + t.Status, "coven task show " + shellWord(t.ID)
}
