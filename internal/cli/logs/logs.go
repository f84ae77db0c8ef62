// Package logs holds the commands that print the events of a session: logs and events.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

type logsOptions struct {
	app    *cli.App
	follow bool
	raw    bool
}

// NewLogs returns the command coven logs.
func NewLogs(a *cli.App) *cobra.Command {
	o := &logsOptions{app: a}
	cmd := &cobra.Command{
		Use:               "logs TASK",
		Short:             "Show what happened in a task's newest session",
		Example:           "  coven logs bd-12\n  coven logs bd-12 -f",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			a.Mirror(cmd.Context(), p)
			v, err := p.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if o.raw {
				return o.printRaw(cmd.Context(), v)
			}
			return o.print(cmd.Context(), v)
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "keep printing until the session stops")
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the steps' raw terminal output")
	return cmd
}

// print prints the events, and with -f also those to come.
func (o *logsOptions) print(ctx context.Context, v session.View) error {
	events := cli.NewSpectator(o.app, v)
	ticker := time.NewTicker(cli.FollowEvery)
	defer ticker.Stop()
	for {
		now, err := events.Show()
		if err != nil {
			return err
		}
		if !o.follow || now.Status != session.Running || now.Elsewhere() {
			return o.app.Printf("%s  %s\n", terminal.Printable(v.Task), control.StateOf(now))
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
	_, err = io.Copy(o.app.Out, reader{ctx, f})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return cli.WriteError(err)
}

// reader stops reading when its context ends.
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
