// Package rescue implements coven rescue, which lists, shows and restores stored work.
package rescue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/rescue"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewRescue returns the command coven rescue.
func NewRescue(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "rescue", Short: "List, show and restore what coven stored",
		Long: `Before coven removes or overwrites work that exists nowhere else, it stores it under
refs/coven/rescue/. If refs, git configuration, hooks or files outside of a task's
worktree change while its agent works, coven stores the states before and after.`,
	}, newList(a), newShow(a), newRestore(a))
}

// rescueJSON is a rescue as rescue list --json prints it.
type rescueJSON struct {
	Name string    `json:"name"`
	Task string    `json:"task"`
	Kind string    `json:"kind"`
	Ref  string    `json:"ref"`
	Time time.Time `json:"time"`
	Note string    `json:"note"`
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list [TASK]", Short: "List what is stored, oldest first", Args: cobra.MaximumNArgs(1),
		Example: "  coven rescue list\n  coven rescue list bd-12", ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			all, err := rescue.List(cmd.Context(), p, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return list(a, all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func list(a *cli.App, all []rescue.Stored, asJSON bool) error {
	if asJSON {
		out := []rescueJSON{}
		for _, r := range all {
			out = append(out, rescueJSON{r.Name, r.Task, kind(r), r.Ref, r.Time.UTC(), r.Note})
		}
		return a.PrintJSON(out)
	}
	if len(all) == 0 {
		return a.Printf("nothing is stored\n")
	}
	return cli.PrintTable(a, "", all, func(r rescue.Stored) string {
		note, _, _ := strings.Cut(r.Note, "\n")
		return fmt.Sprintf("%s\t%s\t%s\t%s", terminal.Printable(r.Name), r.Time.Local().Format("2006-01-02 15:04"), kind(r), terminal.Clip(note, 80))
	})
}

// kind returns the kind of content of a rescue.
func kind(r rescue.Stored) string {
	if r.Changes {
		return "changes"
	}
	return "worktree"
}

func newShow(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "show RESCUE", Short: "Show what is stored",
		Long: `Show what changed in the repository, or the files of a stored worktree: A, M and D mark
files that were added, changed and deleted.

RESCUE is a name that coven rescue list prints, its ref, or a task for its newest rescue.`,
		Example: "  coven rescue show bd-12\n  coven rescue show bd-12#1", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteOne(names),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			r, err := rescue.Find(cmd.Context(), p, args[0])
			if err != nil {
				return err
			}
			c, err := rescue.ContentOf(cmd.Context(), p, r)
			if err != nil {
				return err
			}
			return a.Printf("%s", text(r, c))
		}),
	}
}

// maxShown limits the number of listed changes.
const maxShown = 100

// text returns the content of a rescue for a terminal.
func text(r rescue.Stored, c rescue.Content) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  %s\n", terminal.Printable(r.Name), r.Time.Local().Format("2006-01-02 15:04"), kind(r), terminal.Printable(r.Ref))
	if r.Note != "" {
		fmt.Fprintf(&b, "%s\n", terminal.PrintableLines(r.Note))
	}
	if !r.Changes {
		b.WriteByte('\n')
		for _, f := range c.Files {
			fmt.Fprintf(&b, "%c %s\n", f.Status, terminal.Printable(f.Path))
		}
		return b.String()
	}
	b.WriteByte('\n')
	for i, change := range c.Changes {
		if i == maxShown {
			fmt.Fprintf(&b, "  and %d more\n", len(c.Changes)-i)
			break
		}
		fmt.Fprintf(&b, "  %s\n", terminal.Printable(change))
	}
	if c.Patch != "" {
		fmt.Fprintf(&b, "\n%s", terminal.PrintableLines(c.Patch))
	}
	if c.Cut {
		fmt.Fprintf(&b, "\n(the rest is omitted; files of the checkout: git diff %s:before %s:after)\n", r.Ref, r.Ref)
	}
	return b.String()
}

// names returns the names of the rescues of a project.
func names(ctx context.Context, p *project.Project, _ []string) []string {
	all, _ := rescue.List(ctx, p, "")
	var found []string
	for _, r := range all {
		found = append(found, r.Name)
	}
	return found
}

// restoreOptions are the flags of coven rescue restore.
type restoreOptions struct {
	to  string
	yes bool
}

func newRestore(a *cli.App) *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use: "restore RESCUE", Short: "Undo changes of the repository, or check out a stored worktree",
		Long: `Undo what changed: refs, git configuration, hooks and files return to the state before.
If something has changed again since, nothing is restored. The present state is stored
first, so that restoring can be undone.

A stored worktree is checked out into a new directory: give it with --to. What was only in
its git directory is in .git.coven-rescue there: staged files in staged/STAGE, the files of
a merge or rebase in progress, and commits that no branch had, such as stashes, in
commits.bundle: git bundle unbundle reads and lists them. Ignored files are restored, too.
git show does not show any of these: coven keeps them in .git/coven/private.

RESCUE is a name that coven rescue list prints, its ref, or a task for its newest rescue.`,
		Example: "  coven rescue restore bd-12#2\n  coven rescue restore bd-12#1 --to ../bd-12", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteOne(names),
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, args []string) error {
			return o.run(cmd.Context(), a, p, args[0])
		}),
	}
	cmd.Flags().StringVar(&o.to, "to", "", "check a stored worktree out into `DIR`, which is created")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "restore without asking")
	return cmd
}

func (o restoreOptions) run(ctx context.Context, a *cli.App, p *project.Project, name string) error {
	r, err := rescue.Find(ctx, p, name)
	if err != nil {
		return err
	}
	switch {
	case r.Changes && o.to != "":
		return exit.Usagef("coven rescue restore "+r.Name, "%s has changes of the repository: --to goes with stored worktrees", r.Name)
	case r.Changes:
		return o.undo(ctx, a, p, r)
	case o.to == "":
		return exit.Usagef("coven rescue restore "+r.Name+" --to DIR", "%s has the files of a worktree: give a directory for them with --to", r.Name)
	}
	dir, err := filepath.Abs(o.to)
	if err != nil {
		return fmt.Errorf("find %s: %w", o.to, err)
	}
	if err := rescue.Export(ctx, p, r, dir); err != nil {
		return err
	}
	commits := ""
	if bundle := filepath.Join(o.to, rescue.BundleName); exists(bundle) {
		commits = "commits that no branch has: git bundle unbundle " + shellword.Word(bundle) + "\n"
	}
	return a.Printf("restored in %s\n%s", terminal.Printable(o.to), terminal.PrintableLines(commits))
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// undo asks for confirmation and undoes changes.
func (o restoreOptions) undo(ctx context.Context, a *cli.App, p *project.Project, r rescue.Stored) error {
	if !o.yes {
		if !a.Interactive {
			return exit.Usagef("coven rescue restore --yes "+r.Name, "coven cannot ask here: review with coven rescue show, then give --yes")
		}
		content, err := rescue.ContentOf(ctx, p, r)
		if err != nil {
			return err
		}
		content.Patch = ""
		answer, err := a.Ask(ctx, text(r, content)+"Restore the state before? [y/N] ")
		if err != nil {
			return err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			return a.Printf("nothing was restored\n")
		}
	}
	undo, err := rescue.Restore(ctx, p, r)
	if err != nil {
		return err
	}
	if undo.Ref == "" {
		return a.Printf("nothing to restore: everything is as it was before\n")
	}
	return a.Printf("restored; to undo this: coven rescue restore %s\n", terminal.Printable(undo.Name))
}
