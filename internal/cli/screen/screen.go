// Package screen holds the command coven ui.
package screen

import (
	"context"
	"errors"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/tui"
)

// NewUI returns the command coven ui.
func NewUI(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "ui",
		Short: "Show all tasks on a screen, those that need you first",
		Long: `Show the tasks of the repository on a screen: those that need you, those that run, those that
wait, and those that landed today. The last line names the keys that are useful for the selected
task, and ? names all of them. Each key runs a command line of coven, and @ lists these, so that
you can do the same in a shell.

Commands such as run and approve go on when you leave the screen with q, or close the terminal.
coven without a command also shows the screen. Without a terminal that can show the screen, it prints the
same as coven status.`,
		Example: `  coven ui`,
		Args:    cobra.NoArgs,
		RunE:    a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error { return run(cmd.Context(), a, p) }),
	}
}

// framesPerSecond limits the redraws. An idle screen wakes up as often, so that more would cost more than 1 % of a processor.
const framesPerSecond = 30

func run(ctx context.Context, a *cli.App, p *project.Project) (err error) {
	if !a.Interactive || a.Dumb() {
		a.Mirror(ctx, p)
		o, err := control.OverviewOf(ctx, p, false)
		if err != nil {
			return err
		}
		a.Fleet(p).Explain(ctx, o.Sessions)
		if err := a.PrintOverview(o, false); err != nil {
			return err
		}
		return a.Printf("\nall commands: coven --help\n")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := a.Workdir()
	if err != nil {
		return err
	}
	source := &tui.Repository{Repository: &board.Repository{Context: ctx, Project: p, Program: program, Dir: dir, Clock: a.Now, Explain: a.Fleet(p).Explain}}
	if err := source.Watch(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	_, err = tea.NewProgram(tui.New(source).Announce(a.Sender(p)), tea.WithContext(ctx), tea.WithInput(a.In), tea.WithOutput(a.Out), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
