package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins"
)

// headLines is the number of lines of a script that the page shows.
const headLines = 10

// trustPage describes plugins that are not trusted.
func trustPage(proj *project.Project, open []pluginregistry.Plugin) string {
	if len(open) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This repository contains programs that coven would run. They are not sandboxed: they\n" +
		"can do anything you can. You trust exactly these bytes, in this repository only.\n\n")
	for _, p := range open {
		b.WriteString(trustEntry(proj, p) + "\n")
	}
	return b.String()
}

func trustEntry(proj *project.Project, p pluginregistry.Plugin) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", p.Kind, p.Name, changeText(p))
	fmt.Fprintf(&b, "  file    %s (%s, %s)\n", terminal.Printable(proj.Near(p.File)), terminal.Size(p.Size), Nature(p))
	if real, err := filepath.EvalSymlinks(p.File); err == nil && real != p.File {
		fmt.Fprintf(&b, "          a link to %s\n", terminal.Printable(proj.Near(real)))
	}
	fmt.Fprintf(&b, "  sha256  %.12s\n", p.SHA256)
	if p.Kind == plugins.KindProvider {
		can, cannot := p.Abilities()
		abilityLine(&b, "can", can)
		abilityLine(&b, "cannot", cannot)
	}
	switch p.Hides {
	case "":
	case pluginregistry.FromCoven:
		b.WriteString("  hides   the built-in plugin\n")
	default:
		fmt.Fprintf(&b, "  hides   the plugin from: %s\n", p.Hides)
	}
	if p.State != pluginregistry.Mismatch && p.Detail != "" && p.State != pluginregistry.Changed {
		fmt.Fprintf(&b, "  note    %s\n", terminal.Printable(oneline.Of(p.Detail)))
	}
	lines := strings.Split(strings.TrimRight(p.Head, "\n"), "\n")
	for i, line := range lines[:min(len(lines), headLines)] {
		if p.Lines > 0 {
			fmt.Fprintf(&b, "  %4d  %s\n", i+1, terminal.Clip(terminal.Printable(line), 100))
		}
	}
	if more := p.Lines - min(len(lines), headLines); p.Lines > 0 && more > 0 {
		fmt.Fprintf(&b, "        and %s\n", oneline.Count(more, "more line"))
	}
	return b.String()
}

// changeText describes whether a plugin is new or changed.
func changeText(p pluginregistry.Plugin) string {
	text := "new"
	if p.Before.SHA256 != "" {
		text = fmt.Sprintf("CHANGED since you trusted it on %s (was sha256 %.12s)", p.Before.Since.Local().Format(time.DateOnly), p.Before.SHA256)
	}
	if p.State == pluginregistry.Mismatch {
		text += "\n  DOES NOT MATCH " + pluginregistry.LockFile + ": " + p.Detail + "; trusting it updates the lock"
	}
	return text
}

// Nature describes the file of a plugin.
func Nature(p pluginregistry.Plugin) string {
	switch p.Lines {
	case 0:
		return "a program"
	case 1:
		return "a script of 1 line"
	}
	return fmt.Sprintf("a script of %d lines", p.Lines)
}

func abilityLine(b *strings.Builder, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "  %-6s  %s\n", name, text)
	}
}

// AskTrust shows plugins and requests, and asks whether the user trusts them. Without a terminal it returns
// an error, unless yes is set.
func (a *App) AskTrust(ctx context.Context, p *project.Project, open []pluginregistry.Plugin, wanted []project.Request, yes bool) (bool, error) {
	if err := a.Printf("%s", trustPage(p, open)+requestsPage(wanted)); err != nil {
		return false, err
	}
	switch {
	case yes:
	case !a.Interactive:
		return false, exit.Usagef("coven trust --yes", "nothing was trusted: cannot ask without a terminal")
	default:
		answer, err := a.Ask(ctx, "trust these? [y/N] ")
		if err != nil {
			return false, err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			return false, a.Printf("nothing was trusted\n")
		}
	}
	if err := a.trustRequests(p, wanted); err != nil || len(open) == 0 {
		return err == nil, err
	}
	return true, a.trustPlugins(p, open)
}

func (a *App) trustRequests(p *project.Project, shown []project.Request) error {
	if len(shown) == 0 {
		return nil
	}
	if err := p.TrustRequests(shown); err != nil {
		return err
	}
	var names []string
	for _, r := range shown {
		names = append(names, r.Name)
	}
	return a.Printf("trusted: %s\n", terminal.Printable(strings.Join(names, " ")))
}

func (a *App) trustPlugins(p *project.Project, shown []pluginregistry.Plugin) error {
	if err := p.TrustPlugins(shown); err != nil {
		return err
	}
	var names []string
	for _, plugin := range shown {
		names = append(names, plugin.ID())
	}
	if err := a.Printf("trusted: %s\n", strings.Join(names, " ")); err != nil {
		return err
	}
	changed, err := p.PinPlugins(shown)
	if err != nil || !changed {
		return err
	}
	return a.Printf("wrote %s: commit it so that your team runs the same plugins\n", pluginregistry.LockFile)
}

// AdmitPlugins returns an error if plugins may not run. On a terminal it asks about those that the user
// could trust.
func (a *App) AdmitPlugins(ctx context.Context, p *project.Project, needs []plugins.Need) error {
	wanting, err := p.UntrustedPlugins(needs)
	if err == nil || len(wanting) == 0 || !a.Interactive {
		return err
	}
	trusted, askErr := a.AskTrust(ctx, p, wanting, nil, false)
	if askErr != nil {
		return askErr
	}
	if !trusted {
		return err
	}
	return p.CheckPlugins(needs)
}

// requestsPage describes the variables and MCP servers that a repository requests.
func requestsPage(wanted []project.Request) string {
	var variables, servers strings.Builder
	for _, r := range wanted {
		b, name := &variables, r.Variable
		if r.Kind == trust.KindServer {
			b, name = &servers, r.Name
		}
		fmt.Fprintf(b, "%s  %s\n  for     %s\n", r.Kind, terminal.Printable(name), terminal.Printable(r.Why))
		for _, use := range r.Uses {
			fmt.Fprintf(b, "          %s\n", terminal.Clip(terminal.Printable(oneline.Of(use)), 160))
		}
		b.WriteString("\n")
	}
	text := ""
	if variables.Len() > 0 {
		text = "This repository uses variables from your environment. Programs that get them can send\n" +
			"them anywhere. You trust exactly these uses, in this repository only.\n\n" + variables.String()
	}
	if servers.Len() > 0 {
		text += "This repository has MCP servers for agents. A program runs in the sandbox of each task, an address\n" +
			"gets what agents send. You trust exactly these servers, in this repository only.\n\n" + servers.String()
	}
	return text
}
