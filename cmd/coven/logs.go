package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

type logsOptions struct {
	app    *app
	follow bool
	raw    bool
}

func newLogs(a *app) *cobra.Command {
	o := &logsOptions{app: a}
	cmd := &cobra.Command{
		Use:               "logs TASK",
		Short:             "Show what happened in a task's newest session",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			v, err := h.find(args[0])
			if err != nil {
				return err
			}
			if o.raw {
				return o.printRaw(cmd.Context(), v)
			}
			return o.print(cmd.Context(), v)
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the session stops")
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the raw terminal bytes of the steps")
	return cmd
}

// print shows the events, and with -f those that still come.
func (o *logsOptions) print(ctx context.Context, v session.View) error {
	events := newSpectator(o.app, v)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		now, err := events.show()
		if err != nil {
			return err
		}
		if !o.follow || now.Status != session.Running {
			return o.app.say("%s  %s\n", terminal.Printable(v.Task), stateText(now))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// printRaw copies the logs of the steps, in the order in which they ran.
func (o *logsOptions) printRaw(ctx context.Context, v session.View) error {
	shown := map[string]bool{}
	for _, step := range v.Steps {
		if shown[step.Path] {
			continue
		}
		shown[step.Path] = true
		if err := o.copyLog(ctx, v.Dir, step.Path); err != nil {
			return err
		}
	}
	return nil
}

func (o *logsOptions) copyLog(ctx context.Context, dir, step string) error {
	f, err := session.ReadLog(dir, step)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read log %s: %w", session.LogFile(dir, step), err)
	}
	defer f.Close() //nolint:errcheck // read only
	_, err = io.Copy(o.app.out, reader{ctx, f})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return written(err)
}

// reader ends when its context does.
type reader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
