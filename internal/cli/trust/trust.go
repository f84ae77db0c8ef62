// Package trust implements coven trust, which shows the programs, variables and servers that a repository
// requests, and records those that the user trusts.
package trust

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/terminal"
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
its configuration or as secrets of its grimoires, and the MCP servers that it has for
agents. coven passes the variables on, and starts the servers, only after you trust them.

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
			if list {
				return listTrusted(a, p, asJSON)
			}
			if err := control.ByPerson(p); err != nil {
				return err
			}
			if revoke {
				return revokeTrust(a, p, args)
			}
			return offerTrust(cmd.Context(), a, p, args, yes)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list what is trusted in this repository")
	f.BoolVar(&revoke, "revoke", false, "stop trusting the named plugins (default: everything of this repository)")
	f.BoolVar(&yes, "yes", false, "trust what is shown without asking")
	f.BoolVar(&asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// offerTrust shows the untrusted items and asks whether to trust them.
func offerTrust(ctx context.Context, a *cli.App, p *project.Project, names []string, yes bool) error {
	offer, err := p.TrustOffer(names, yes)
	if err != nil {
		return err
	}
	if offer.IsEmpty() {
		return a.Printf("nothing to trust: coven plugins list shows all plugins\n")
	}
	for _, plugin := range offer.Mismatched {
		a.PrintError(project.MismatchError(plugin))
	}
	if len(offer.Plugins) == 0 && len(offer.Requests) == 0 {
		return exit.Status(exit.Usage)
	}
	trusted, err := a.AskTrust(ctx, p, offer.Plugins, offer.Requests, yes)
	if err == nil && (!trusted || len(offer.Mismatched) > 0) {
		err = exit.Status(exit.Usage)
	}
	return err
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
		return a.PrintJSON(append([]trust.Item{}, items...))
	}
	if len(items) == 0 {
		return a.Printf("nothing of this repository is trusted\n")
	}
	return cli.PrintTable(a, "", items, func(it trust.Item) string {
		return fmt.Sprintf("%s\t%s\t%.12s\t%s\t%s", it.Kind, terminal.Printable(it.Name), it.SHA256, it.Since.Local().Format(time.DateOnly), terminal.Printable(it.What))
	})
}

// revokeTrust stops trusting the named items, or everything of this repository.
func revokeTrust(a *cli.App, p *project.Project, names []string) error {
	removed, unknown, err := p.RevokeTrust(names)
	if err != nil {
		return err
	}
	if len(removed) == 0 && len(unknown) == 0 {
		return a.Printf("nothing of this repository is trusted\n")
	}
	for _, it := range removed {
		if err := a.Printf("no longer trusted: %s\n", terminal.Printable(it.Name)); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range unknown {
		errs = append(errs, exit.Failedf("coven trust --list", "%s is not trusted", name))
	}
	return errors.Join(errs...)
}

// trustNames returns the names that coven trust accepts.
func trustNames(_ context.Context, proj *project.Project, _ []string) []string {
	var names []string
	if all, err := proj.Requests(); err == nil {
		for _, request := range all {
			names = append(names, request.Name)
		}
	}
	if r, err := proj.Registry(); err == nil {
		all, _ := r.List()
		for _, p := range all {
			if p.Project && p.State != pluginregistry.Hidden && p.Kind != "" {
				names = append(names, p.ID())
			}
		}
	}
	return names
}
