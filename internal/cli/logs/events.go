package logs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// NewEvents returns the command coven events.
func NewEvents(a *cli.App) *cobra.Command {
	var follow bool
	var since int64
	cmd := &cobra.Command{
		Use:   "events [SESSION|TASK]",
		Short: "Print events as JSON lines",
		Long: `Print the events of a session, of a task's newest session, or of all sessions, one
JSON object per line, oldest first. coven help session describes the format.
With --follow, keep printing new events until the session stops, or until Ctrl-C
if no session is named.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			if since < 0 {
				return exit.Usagef("coven events --since 0", "--since %d is less than 0", since)
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			a.Mirror(cmd.Context(), p)
			w := &watcher{app: a, root: p.Repo.Root, tails: map[string]*event.Tail{}, broken: map[string]bool{}, since: since}
			if len(args) == 1 {
				v, err := p.SessionOf(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				w.only = v.Dir
			}
			return w.run(cmd.Context(), follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new events")
	cmd.Flags().Int64Var(&since, "since", 0, "skip the events up to number `SEQ` of each session")
	return cmd
}

// watcher prints the events of one session or of all sessions.
type watcher struct {
	app   *cli.App
	root  string
	only  string // directory of a session; empty for all sessions
	since int64
	tails map[string]*event.Tail

	broken map[string]bool // directories whose record is damaged
}

func (w *watcher) run(ctx context.Context, follow bool) error {
	ticker := time.NewTicker(cli.FollowEvery)
	defer ticker.Stop()
	for {
		over := w.over() // before printNew, so that the last events are printed
		if err := w.printNew(); err != nil {
			return err
		}
		if !follow || over {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// over reports whether no more events will come.
func (w *watcher) over() bool {
	if w.only == "" {
		return false
	}
	v, err := session.Load(w.only)
	return err != nil || v.Status != session.Running || v.Elsewhere()
}

// printNew prints new events, ordered by time across sessions.
func (w *watcher) printNew() error {
	dirs, err := w.dirs()
	if err != nil {
		return err
	}
	var fresh []event.Event
	for _, dir := range dirs {
		if w.broken[dir] {
			continue
		}
		tail, ok := w.tails[dir]
		if !ok {
			tail = event.NewTail(filepath.Join(dir, "events.jsonl"))
			w.tails[dir] = tail
		}
		if w.only != "" {
			return tail.Next(w.print)
		}
		err := tail.Next(func(e event.Event) error {
			fresh = append(fresh, e)
			return nil
		})
		if err != nil { // report a damaged record once
			w.broken[dir] = true
			w.app.PrintError(err)
		}
	}
	slices.SortStableFunc(fresh, func(a, b event.Event) int { return a.Time.Compare(b.Time) })
	for _, e := range fresh {
		if err := w.print(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) print(e event.Event) error {
	if e.Seq <= w.since {
		return nil
	}
	return w.app.Printf("%s", terminal.JSONLine(e))
}

func (w *watcher) dirs() ([]string, error) {
	if w.only != "" {
		return []string{w.only}, nil
	}
	parent := filepath.Join(w.root, session.Dir)
	entries, err := os.ReadDir(parent)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(parent, e.Name()))
		}
	}
	return dirs, nil
}
