// Package plugin implements coven plugins, which lists, verifies, tests and creates plugins.
package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/provider"
)

// NewPlugins returns the command coven plugins.
func NewPlugins(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "plugins", Short: "List, verify, test and write plugins; only test and models start them",
	}, newPluginsList(a), newPluginsInfo(a), newPluginsModels(a), newPluginsVerify(a), newPluginsTest(a), newPluginsNew(a), newPluginsProto(a))
}

// pluginJSON is a plugin as plugins list --json prints it.
type pluginJSON struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	From     string `json:"from"` // project, user, PATH, built in
	File     string `json:"file,omitempty"`
	State    string `json:"state"`
	Detail   string `json:"detail,omitempty"`
	HiddenBy string `json:"hidden_by,omitempty"`
	Project  bool   `json:"project"` // the repository controls it
	Locked   bool   `json:"locked"`  // listed in plugins.lock
	SHA256   string `json:"sha256,omitempty"`
	Before   string `json:"sha256_trusted,omitempty"` // the trusted hash of a changed plugin
	Size     int64  `json:"size,omitempty"`
	// Declared by providers. Only plugins info reads the programs.
	Capabilities provider.Capabilities `json:"capabilities,omitzero"`
}

func pluginsJSON(all []pluginregistry.Plugin) []pluginJSON {
	list := []pluginJSON{}
	for _, p := range all {
		list = append(list, pluginJSON{
			string(p.Kind), p.Name, p.From, p.File, string(p.State), p.Detail, p.HiddenBy, p.Project, p.Locked, p.SHA256, p.Before.SHA256, p.Size, p.Capabilities,
		})
	}
	return list
}

func newPluginsList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List plugins, where they come from, and whether they may run", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, all, err := allPlugins(cmd.Context(), a, (*pluginregistry.Registry).List)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(pluginsJSON(all))
			}
			return printPlugins(a, p, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// allPlugins lists the plugins of the repository, or of the user outside a repository.
func allPlugins(ctx context.Context, a *cli.App, list func(*pluginregistry.Registry) ([]pluginregistry.Plugin, error)) (*project.Project, []pluginregistry.Plugin, error) {
	p, err := a.OpenOrOutside(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := p.Registry()
	if err != nil {
		return nil, nil, err
	}
	all, err := list(r)
	return p, all, err
}

func printPlugins(a *cli.App, proj *project.Project, all []pluginregistry.Plugin) error {
	return cli.PrintTable(a, "", all, func(p pluginregistry.Plugin) string {
		kind, name := p.Kind, p.Name
		if kind == "" {
			kind, name = "-", p.ID()
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s", kind, terminal.Printable(name), terminal.Printable(whence(proj, p)), terminal.Printable(stateOf(proj, p)))
	})
}

// whence returns the origin of a plugin.
func whence(proj *project.Project, p pluginregistry.Plugin) string {
	if p.File == "" {
		return p.From
	}
	return p.From + ": " + proj.Near(p.File)
}

// stateOf describes whether a plugin may run.
func stateOf(proj *project.Project, p pluginregistry.Plugin) string {
	if p.State == pluginregistry.Hidden {
		return "hidden by " + proj.Near(p.HiddenBy)
	}
	if p.Detail == "" {
		return string(p.State)
	}
	return string(p.State) + " (" + oneline.Of(p.Detail) + ")"
}

func newPluginsInfo(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "info NAME", Short: "Show details of a plugin, by its name or file name",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteOne(pluginNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			proj, all, err := allPlugins(cmd.Context(), a, onlyCalled(args[0]))
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return exit.Failedf("coven plugins list", "there is no plugin %q", args[0])
			}
			if asJSON {
				return a.PrintJSON(pluginsJSON(all))
			}
			for _, p := range all {
				if err := a.Printf("%s", pluginInfo(proj, p)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// onlyCalled lists the plugins with a name, with their hashes.
func onlyCalled(name string) func(*pluginregistry.Registry) ([]pluginregistry.Plugin, error) {
	return func(r *pluginregistry.Registry) ([]pluginregistry.Plugin, error) {
		all, err := r.List()
		all = slices.DeleteFunc(all, func(p pluginregistry.Plugin) bool { return !project.HasName(p, name) })
		for i := range all {
			all[i] = r.Verified(all[i])
		}
		return all, err
	}
}

// pluginInfo returns the details of a plugin.
func pluginInfo(proj *project.Project, p pluginregistry.Plugin) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-7s  %s\n", name, terminal.Printable(text))
		}
	}
	fmt.Fprintf(&b, "%s  %s\n", p.Kind, p.Name)
	line("from", p.From)
	line("file", p.File)
	line("state", stateOf(proj, p))
	if p.SHA256 != "" {
		line("size", fmt.Sprintf("%s, %s", terminal.Size(p.Size), cli.Nature(p)))
	}
	line("sha256", p.SHA256)
	line("trusted", p.Before.SHA256)
	if p.Kind == plugins.KindProvider {
		can, cannot := p.Abilities()
		line("can", can)
		line("cannot", cannot)
	}
	if p.Kind == plugins.KindModel && p.Runs() {
		line("models", "coven plugins models "+p.Name)
	}
	if p.Locked {
		line("lock", pluginregistry.LockFile+" names it")
	}
	line("next", p.NextCommand())
	return b.String()
}

func newPluginsVerify(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the hashes of all plugins, and list those that may not run",
		Long: `Hash all plugins again, and compare them with what you trust and with
.coven/plugins.lock. The exit code is 1 if a plugin may not run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, all, err := allPlugins(cmd.Context(), a, (*pluginregistry.Registry).Verify)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.PrintJSON(pluginsJSON(all))
			} else {
				err = printVerified(a, p, all)
			}
			if err == nil && slices.ContainsFunc(all, project.CannotRun) {
				err = exit.Status(exit.Failed)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printVerified prints a line for each plugin that is not hidden.
func printVerified(a *cli.App, proj *project.Project, all []pluginregistry.Plugin) error {
	count, wrong := 0, 0
	for _, p := range all {
		if p.State == pluginregistry.Hidden {
			continue
		}
		mark := "ok  "
		if count++; project.CannotRun(p) {
			mark, wrong = "FAIL", wrong+1
		}
		text := fmt.Sprintf("%s  %s  %.12s  %s\n", mark, terminal.Printable(p.ID()), p.SHA256+strings.Repeat("-", 12), terminal.Printable(stateOf(proj, p)))
		if next := p.NextCommand(); next != "" {
			text += "      next: " + terminal.Printable(next) + "\n"
		}
		if err := a.Printf("%s", text); err != nil {
			return err
		}
	}
	return a.Printf("%s, %d may not run\n", oneline.Count(count, "plugin"), wrong)
}

// pluginNames returns the plugins of a project.
func pluginNames(_ context.Context, p *project.Project, _ []string) []string {
	r, err := p.Registry()
	if err != nil {
		return nil
	}
	var names []string
	for _, kind := range plugins.Kinds() {
		for _, name := range r.Names(kind) {
			names = append(names, pluginregistry.Plugin{Kind: kind, Name: name}.ID())
		}
	}
	return names
}
