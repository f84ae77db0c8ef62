package screen

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

type snoozeOptions struct {
	app          *cli.App
	span         time.Duration
	changed, off bool
}

// NewSnooze returns the command coven snooze.
func NewSnooze(a *cli.App) *cobra.Command {
	o := &snoozeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "snooze TASK",
		Short: "Do not show the question of a task for a while",
		Long: `Move a task that needs you to those that wait, on the screen and on the page. It needs you again
when the time is over, or at once when it has another question. Nothing else changes: you can
answer the question as before, and no agent works in the meantime.`,
		Example:           "  coven snooze bd-12\n  coven snooze bd-12 --for 4h\n  coven snooze bd-12 --until-changed\n  coven snooze bd-12 --off",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE:              a.InProject(o.run),
	}
	cmd.Flags().DurationVar(&o.span, "for", time.Hour, "snooze for this `TIME`, such as 30m or 4h")
	cmd.Flags().BoolVar(&o.changed, "until-changed", false, "snooze until the task has another question")
	cmd.Flags().BoolVar(&o.off, "off", false, "show the question again")
	cmd.MarkFlagsMutuallyExclusive("for", "until-changed", "off")
	return cmd
}

func (o *snoozeOptions) run(cmd *cobra.Command, p *project.Project, args []string) error {
	if o.span <= 0 {
		return exit.Usagef("coven snooze --help", "--for %s is not a time to wait", o.span)
	}
	v, err := p.Find(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	task := terminal.Printable(v.Task)
	if o.off {
		if err := board.Wake(v); err != nil {
			return err
		}
		return o.app.Printf("%s: not snoozed\n", task)
	}
	now, until, text := o.app.Now(), time.Time{}, "it changes"
	if !o.changed {
		until = now.Add(o.span)
		text = terminal.Clock(until, now)
	}
	if err := board.Snooze(v, until); err != nil {
		return err
	}
	return o.app.Printf("%s: snoozed until %s\n", task, text)
}
