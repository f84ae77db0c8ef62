package main

import (
	"context"
	"errors"
	"os"

	"github.com/coven-run/coven/internal/exit"
	"golang.org/x/term"
)

// run is coven: it runs one command line and returns the exit code.
func run(a *app, args []string) int {
	ctx, stop := a.interruptible()
	defer stop()
	a.stopped = ctx.Done()
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		err = interruptedBy(err)
	}
	a.explain(err)
	return exit.Code(err)
}

func newApp(version string) *app {
	return &app{
		env: newEnv(version),
		in:  os.Stdin, out: os.Stdout, err: os.Stderr,
		interactive: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		size: func() (int, int) {
			width, height, err := term.GetSize(int(os.Stdout.Fd()))
			if err != nil || width <= 0 || height <= 0 {
				return 80, 24
			}
			return width, height
		},
	}
}
