package sessions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/archive"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// The formats of exports.
const (
	formatMarkdown = "md"
	formatLines    = "jsonl"
)

type exportOptions struct {
	app *cli.App

	to, format, status string

	store *secret.Store
}

func newExport(a *cli.App) *cobra.Command {
	o := &exportOptions{app: a}
	cmd := &cobra.Command{
		Use: "export [SESSION...]", Short: "Export the records of sessions as Markdown or as JSON lines",
		Long: `Export sessions, by default all.

As Markdown, their records are copied into a folder for other programs, such as Obsidian, which does
not show folders whose names begin with a dot. Each session is a folder of its own; an earlier export
of it is replaced.

As JSON lines (--format jsonl), each session is one JSON object on the standard output, for programs
that learn from it: the task and the prompts, what agents did, the change that landed, and what
people said. Secrets are masked.`,
		Example: `  coven sessions export --to notes/coven
  coven sessions export --status completed --format jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), p, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "the `DIR` to copy them into")
	f.StringVar(&o.format, "format", formatMarkdown, "the `FORMAT`: md or jsonl")
	f.StringVar(&o.status, "status", "", "only sessions in this `STATE`, such as completed or failed")
	return cmd
}

// states lists the states that a session can have.
func states() []string {
	var all []string
	for _, s := range []event.Status{
		session.Running, session.Waiting, session.Completed, session.Failed, session.Blocked, session.Cancelled, session.Interrupted,
	} {
		all = append(all, string(s))
	}
	return all
}

// check returns an error if the flags cannot be combined.
func (o *exportOptions) check() error {
	switch {
	case o.format != formatMarkdown && o.format != formatLines:
		return exit.Usagef("coven sessions export --format jsonl", "--format %q is neither md nor jsonl", o.format)
	case o.format == formatMarkdown && o.to == "":
		return exit.Usagef("coven sessions export --to DIR", "--to is missing")
	case o.format == formatLines && o.to != "":
		return exit.Usagef("coven sessions export --format jsonl", "--format jsonl prints to the standard output and has no --to")
	case o.status != "" && !slices.Contains(states(), o.status):
		return exit.Usagef("coven sessions export --status completed", "--status %q is none of %s", o.status, strings.Join(states(), ", "))
	}
	return nil
}

func (o *exportOptions) run(ctx context.Context, p *project.Project, names []string) (err error) {
	if o.format == formatLines {
		if o.store, err = p.Secrets(); err != nil {
			return err
		}
		p.HideVariables(o.store)
	}
	done, failed := 0, false
	if len(names) == 0 {
		done, failed, err = o.all(ctx, p)
	}
	for _, name := range names {
		exported, err := o.one(ctx, p, name)
		if err != nil {
			return err
		}
		if exported {
			done++
		}
	}
	if err == nil && o.format == formatMarkdown {
		err = o.app.Printf("%d sessions in %s\n", done, terminal.Printable(o.to))
	}
	if err != nil || !failed {
		return err
	}
	return exit.Status(exit.Failed)
}

// all exports all readable sessions, and prints the errors of the others.
func (o *exportOptions) all(ctx context.Context, p *project.Project) (done int, failed bool, err error) {
	ids, err := session.IDs(p.Repo.Root)
	if err != nil {
		return 0, false, err
	}
	for _, id := range ids {
		if session.NeverStarted(p.Repo.Root, id) {
			continue
		}
		exported, err := o.one(ctx, p, id)
		if err != nil {
			o.app.PrintError(err)
			failed = true
		}
		if exported {
			done++
		}
	}
	return done, failed, nil
}

// one exports a session, unless --status excludes it.
func (o *exportOptions) one(ctx context.Context, p *project.Project, name string) (exported bool, err error) {
	v, err := p.SessionOf(ctx, name)
	if err != nil {
		return false, err
	}
	v = v.Shown()
	if o.status != "" && string(v.Status) != o.status {
		return false, nil
	}
	if o.format == formatMarkdown {
		return true, archive.Export(dirOf(p, v), o.to)
	}
	return true, o.line(ctx, p, v)
}

// line prints a session as a line of JSON.
func (o *exportOptions) line(ctx context.Context, p *project.Project, v session.View) error {
	lesson, err := archive.NewLesson(ctx, p.Repo, v)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(lesson); err != nil {
		return fmt.Errorf("encode session %s: %w", v.ID, err)
	}
	masked := o.store.JSON(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
	_, err = o.app.Out.Write(append(terminal.SafeJSON(masked), '\n'))
	return cli.WriteError(err)
}
