package main

import (
	"fmt"

	"github.com/coven-run/coven/internal/terminal"
	"github.com/spf13/cobra"
)

func newWhy(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "why TASK",
		Short: "Say why a task is where it is, and the one command that goes on",
		Long: `Say in one line why a task is where it is, and the one command that goes on. It
reads the disk and the tracker: coven need not run.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(all),
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
			return a.say("%s\n", terminal.PrintableLines(r.text()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (r reason) text() string {
	text := fmt.Sprintf("%s  %s: %s", r.Task, r.State, r.Reason)
	if r.Next != "" {
		text += "\n  next: " + r.Next
	}
	return text
}
