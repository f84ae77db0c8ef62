package status

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/collisions"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewWhy returns the command coven why.
func NewWhy(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why TASK",
		Short: "Explain a task's state and the next command to run",
		Long: `Explain in one line why a task is in its state, and name the next command to run.
coven need not be running.`,
		Example:           `  coven why bd-12`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.All),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			a.Mirror(cmd.Context(), p)
			r, err := control.Why(cmd.Context(), p, args[0])
			if err == nil && r.State == "queued" {
				err = heldBack(cmd.Context(), p, &r)
			}
			if err != nil {
				return err
			}
			if v, err := p.Finder.OfTask(r.Task); err == nil {
				waiting := []session.View{v}
				if a.Fleet(p).Explain(cmd.Context(), waiting); waiting[0].Detail != v.Detail {
					r.Reason, r.Next = control.DetailOf(waiting[0]), control.NextOf(waiting[0])
				}
			}
			if asJSON {
				return a.PrintJSON(r)
			}
			return a.Printf("%s\n", terminal.PrintableLines(text(r)))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// heldBack explains a ready task that another task holds back.
func heldBack(ctx context.Context, p *project.Project, r *control.Reason) error {
	tracker, err := p.Tasks()
	if err != nil {
		return err
	}
	t, err := tracker.Get(ctx, r.Task)
	if err != nil {
		return err
	}
	holder, err := collisions.Holder(ctx, p, t)
	if err == nil && holder != "" {
		r.State, r.Reason = "waiting (dependency)", "declares to change the same files as task "+holder+", which has not landed (run.collisions)"
		r.Next, r.Or = "coven why "+shellword.Word(holder), append(r.Or, "coven run "+shellword.Word(r.Task))
	}
	return err
}

func text(r control.Reason) string {
	text := fmt.Sprintf("%s  %s: %s", r.Task, r.State, r.Reason)
	for _, c := range r.Collisions {
		text += "\n  " + collisions.Text(c)
	}
	if r.Next != "" {
		text += "\n  next: " + r.Next
	}
	if len(r.Or) > 0 {
		text += "\n  or: " + strings.Join(r.Or, ", ")
	}
	return text
}
