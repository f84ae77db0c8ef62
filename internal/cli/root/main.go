package root

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
)

// Run runs one command line and returns the exit code.
func Run(a *cli.App, args []string) int {
	ctx, stop := a.Interruptible()
	defer stop()
	defer a.Keyboard.Release()
	a.Stopped = ctx.Done()
	root := NewRoot(a)
	args = promptInEditor(args)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil && errors.Is(context.Cause(ctx), control.ErrInterrupted) {
		err = cli.InterruptedBy(err)
	}
	a.PrintError(advised(root, args, err))
	return exit.Code(err)
}

// promptInEditor replaces the -p without a text at the end of coven run, which cobra would refuse.
func promptInEditor(args []string) []string {
	last := len(args) - 1
	if last < 1 || args[0] != "run" || args[last] != "-p" && args[last] != "--prompt" {
		return args
	}
	return append(slices.Clone(args[:last]), "--edit")
}

// advised adds the help of the command to a usage error that has no next command.
func advised(root *cobra.Command, args []string, err error) error {
	if exit.Code(err) != exit.Usage || exit.IsSilent(err) || exit.Next(err) != "" {
		return err
	}
	cmd, _, found := root.Find(args)
	if found != nil {
		return err
	}
	return &exit.Error{Exit: exit.Usage, Err: err, Next: cmd.CommandPath() + " --help"}
}

// NewApp returns the app of this process. version is the version of coven.
func NewApp(version string) *cli.App {
	a := &cli.App{
		Environment: project.NewEnv(version),
		In:          os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Terminal:    term.IsTerminal(int(os.Stdout.Fd())),
		Interactive: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		Size: func() (int, int) {
			width, height, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		},
	}
	if a.Interactive && !a.Dumb() {
		a.Keyboard = terminal.NewKeyboard(os.Stdin, os.Stdout)
	}
	return a
}
