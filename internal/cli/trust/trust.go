// Package trust is coven trust: it shows what a repository wants to run, and records what
// the user trusts.
package trust

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
)

// NewTrust returns the command coven trust.
func NewTrust(a *cli.App) *cobra.Command {
	var list, revoke, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [NAME...]",
		Short: "Review and trust the programs that this repository wants to run",
		Long: `Show the plugins of this repository that are new or changed, and ask whether you
trust them. A plugin is not sandboxed: it can do anything you can. You trust exactly
the bytes shown, for this repository; when they change, coven asks again. This
command runs nothing.

It also shows the environment variables that this repository asks for, by env.pass in
its configuration or as secrets of its grimoires. coven passes them on only after you
trust these uses.

Trusted hashes are also written to .coven/plugins.lock, for everyone who works on the
repository; your trust itself is stored outside it. --yes does not trust a plugin
that mismatches the lock unless you name it. COVEN_TRUST=1 in the environment trusts
everything that matches the lock, for one command.`,
		Example: `  coven trust
  coven trust coven-reviewer-style
  coven trust --list
  coven trust --revoke coven-reviewer-style`,
		ValidArgsFunction: a.CompleteWords(trustNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && (revoke || yes || len(args) > 0):
				return exit.Usagef("coven trust --list", "--list goes with --json only")
			case asJSON && !list:
				return exit.Usagef("coven trust --list --json", "--json goes with --list only")
			case revoke && yes:
				return exit.Usagef("coven trust --revoke", "give --revoke or --yes, not both")
			}
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			switch {
			case list:
				return listTrusted(a, p, asJSON)
			case revoke:
				return revokeTrust(a, p, args)
			}
			return offerTrust(cmd.Context(), a, p, args, yes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list what is trusted in this repository")
	f.BoolVar(&revoke, "revoke", false, "stop trusting the named plugins; without NAME: everything of this repository")
	f.BoolVar(&yes, "yes", false, "trust what is shown without asking")
	f.BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// offerTrust shows the plugins that a person could trust, and asks.
func offerTrust(ctx context.Context, a *cli.App, proj *project.Project, names []string, yes bool) error {
	wanted, rest, err := proj.UntrustedVariables(names)
	if err != nil {
		return err
	}
	all, err := namedPlugins(proj, names, rest)
	if err != nil {
		return err
	}
	open, lost := trustable(all, yes && len(names) == 0)
	if len(open) == 0 && len(lost) == 0 && len(wanted) == 0 {
		return a.Printf("nothing to trust: coven plugins list shows all plugins\n")
	}
	for _, p := range lost {
		a.PrintError(mismatchError(p))
	}
	if len(open) == 0 && len(wanted) == 0 {
		return exit.Status(exit.Usage)
	}
	trusted, err := a.AskTrust(ctx, proj, open, wanted, yes)
	if err == nil && (!trusted || len(lost) > 0) {
		err = exit.Status(exit.Usage)
	}
	return err
}

// namedPlugins are the plugins that a person means: all, or those of the names that
// mean no variable.
func namedPlugins(p *project.Project, names, rest []string) ([]registry.Plugin, error) {
	if len(names) > 0 && len(rest) == 0 {
		return nil, nil
	}
	r, err := p.Registry()
	if err != nil {
		return nil, err
	}
	all, err := r.List()
	if err != nil || len(names) == 0 {
		return all, err
	}
	return named(all, rest)
}

// named are the plugins of these names, those left out that are hidden. A name that
// several plugins have means none of them; one that is built in needs no trust.
func named(all []registry.Plugin, names []string) ([]registry.Plugin, error) {
	var found []registry.Plugin
	for _, name := range names {
		before, ids := len(found), []string(nil)
		for _, p := range all {
			if p.State != registry.Hidden && project.HasName(p, name) {
				found = append(found, p)
				if p.State != registry.BuiltIn {
					ids = append(ids, p.ID())
				}
			}
		}
		switch {
		case len(found) == before:
			return nil, exit.Failedf("coven plugins list", "there is no plugin %q", name)
		case len(ids) > 1:
			return nil, exit.Usagef("coven trust "+shellword.Word(ids[0]), "%q is the name of %d plugins: %s", name, len(ids), strings.Join(ids, ", "))
		}
	}
	return found, nil
}

// trustable are the plugins that a person's word helps, and those that do not match
// the lock, which it does not: they are not the project's, or nobody has looked.
func trustable(all []registry.Plugin, unseen bool) (open, lost []registry.Plugin) {
	for _, p := range all {
		switch {
		case p.State == registry.Mismatch && (unseen || !p.Project):
			lost = append(lost, p)
		case p.State == registry.Untrusted, p.State == registry.Changed, p.State == registry.Mismatch:
			open = append(open, p)
		}
	}
	return open, lost
}

// mismatchError says that a plugin does not match the lock. Nobody puts that right in
// passing: a yes to everything is none to this.
func mismatchError(p registry.Plugin) error {
	next := p.NextCommand()
	if p.Project {
		next = "coven trust --yes " + shellword.Word(p.ID())
	}
	return &exit.Error{Exit: exit.Usage, Err: &registry.MismatchError{Plugin: p}, Next: next}
}

// trustedJSON is what is trusted, as trust --list --json has it.
type trustedJSON struct {
	Kind   string    `json:"kind"`
	Name   string    `json:"name"`
	What   string    `json:"what"`
	SHA256 string    `json:"sha256"`
	Since  time.Time `json:"since"`
}

func listTrusted(a *cli.App, p *project.Project, asJSON bool) error {
	store, err := p.TrustStore()
	if err != nil {
		return err
	}
	items, err := store.Items()
	if err != nil {
		return err
	}
	if asJSON {
		all := []trustedJSON{}
		for _, it := range items {
			all = append(all, trustedJSON(it))
		}
		return a.PrintJSON(all)
	}
	if len(items) == 0 {
		return a.Printf("nothing of this repository is trusted\n")
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	for _, it := range items {
		fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\t%s\n", it.Kind, terminal.Printable(it.Name), it.SHA256, it.Since.Local().Format(time.DateOnly), terminal.Printable(it.What)) //nolint:errcheck // Flush reports it
	}
	return cli.WriteError(w.Flush())
}

// revokeTrust ends the trust in plugins, or in all of this repository.
func revokeTrust(a *cli.App, p *project.Project, names []string) error {
	store, err := p.TrustStore()
	if err != nil {
		return err
	}
	revoked := func(it trust.Item, name string) bool {
		return it.Name == name || it.Kind == trust.KindSecret && (strings.HasPrefix(it.Name, name+":") || strings.HasPrefix(it.What, "$"+name+":")) || it.Kind == trust.KindPlugin && slices.ContainsFunc(plugins.Kinds(), func(kind plugins.Kind) bool {
			return it.Name == registry.Plugin{Kind: kind, Name: name}.ID()
		})
	}
	removed, err := store.Remove(func(it trust.Item) bool {
		return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return revoked(it, name) })
	})
	if err != nil {
		return err
	}
	var unknown []error
	for _, name := range names {
		if !slices.ContainsFunc(removed, func(it trust.Item) bool { return revoked(it, name) }) {
			unknown = append(unknown, exit.Failedf("coven trust --list", "%s is not trusted", name))
		}
	}
	if len(removed) == 0 && len(unknown) == 0 {
		return a.Printf("nothing of this repository is trusted\n")
	}
	for _, it := range removed {
		if err := a.Printf("no longer trusted: %s\n", terminal.Printable(it.Name)); err != nil {
			return err
		}
	}
	return errors.Join(unknown...)
}

// trustNames are what coven trust can name.
func trustNames(_ context.Context, proj *project.Project, _ []string) []string {
	var names []string
	if all, err := proj.VariableRequests(); err == nil {
		for _, request := range all {
			names = append(names, request.Name)
		}
	}
	if r, err := proj.Registry(); err == nil {
		all, _ := r.List()
		for _, p := range all {
			if p.Project && p.State != registry.Hidden && p.Kind != "" {
				names = append(names, p.ID())
			}
		}
	}
	return names
}
