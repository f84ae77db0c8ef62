package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/screen"
	"github.com/coven-run/coven/internal/session"
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
				return o.printRaw(v)
			}
			return o.print(cmd.Context(), v)
		},
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the session stops")
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the raw terminal bytes of the steps")
	return cmd
}

// followEvery is how often a followed session is read again.
const followEvery = 200 * time.Millisecond

// print shows the events, and with -f those that still come.
func (o *logsOptions) print(ctx context.Context, v session.View) error {
	tail := event.NewTail(filepath.Join(v.Dir, "events.jsonl"))
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		// The state is read before the events: what ends the session is shown.
		now, err := session.Load(v.Dir)
		if err != nil {
			return err
		}
		events, err := tail.Next()
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := o.app.say("%s", screen.Lines(e)); err != nil {
				return err
			}
		}
		if !o.follow || now.Status != session.Running {
			return o.app.say("%s  %s\n", printable(v.Task), stateText(now))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// printRaw copies the logs of the steps, in the order in which they ran.
func (o *logsOptions) printRaw(v session.View) error {
	shown := map[string]bool{}
	for _, step := range v.Steps {
		if shown[step.Path] {
			continue
		}
		shown[step.Path] = true
		if err := o.copyLog(session.LogFile(v.Dir, step.Path)); err != nil {
			return err
		}
	}
	return nil
}

func (o *logsOptions) copyLog(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	_, err = io.Copy(o.app.out, f)
	return written(err)
}
