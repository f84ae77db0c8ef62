package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// headLines is how many lines of a script are shown.
const headLines = 10

// TrustPage shows plugins that are not trusted.
func TrustPage(proj *project.Project, open []registry.Plugin) string {
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

func trustEntry(proj *project.Project, p registry.Plugin) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", p.Kind, p.Name, novelty(p))
	fmt.Fprintf(&b, "  file    %s (%s, %s)\n", terminal.Printable(proj.Near(p.File)), terminal.Size(p.Size), Nature(p))
	if real, err := filepath.EvalSymlinks(p.File); err == nil && real != p.File {
		fmt.Fprintf(&b, "          which is %s\n", terminal.Printable(proj.Near(real)))
	}
	fmt.Fprintf(&b, "  sha256  %.12s\n", p.SHA256)
	switch p.Hides {
	case "":
	case registry.FromCoven:
		b.WriteString("  hides   the built-in plugin\n")
	default:
		fmt.Fprintf(&b, "  hides   the plugin from: %s\n", p.Hides)
	}
	if p.State != registry.Mismatch && p.Detail != "" && p.State != registry.Changed {
		fmt.Fprintf(&b, "  note    %s\n", terminal.Printable(oneline.Of(p.Detail)))
	}
	lines := strings.Split(strings.TrimRight(p.Head, "\n"), "\n")
	for i, line := range lines[:min(len(lines), headLines)] {
		if p.Lines > 0 {
			fmt.Fprintf(&b, "  %4d  %s\n", i+1, terminal.Clip(terminal.Printable(line), 100))
		}
	}
	if more := p.Lines - min(len(lines), headLines); p.Lines > 0 && more > 0 {
		fmt.Fprintf(&b, "        and %d more lines\n", more)
	}
	return b.String()
}

// novelty is what is new about a plugin.
func novelty(p registry.Plugin) string {
	text := "new"
	if p.Before.SHA256 != "" {
		text = fmt.Sprintf("CHANGED since you trusted it on %s (was sha256 %.12s)", p.Before.Since.Local().Format(time.DateOnly), p.Before.SHA256)
	}
	if p.State == registry.Mismatch {
		text += "\n  DOES NOT MATCH " + registry.LockFile + ": " + p.Detail + "; trusting it updates the lock"
	}
	return text
}

// Nature is what a plugin's file looks like.
func Nature(p registry.Plugin) string {
	switch p.Lines {
	case 0:
		return "a program"
	case 1:
		return "a script of 1 line"
	}
	return fmt.Sprintf("a script of %d lines", p.Lines)
}

// AskTrust shows plugins and asks whether to trust them. Without a terminal the answer
// is no, unless yes is set.
func (a *App) AskTrust(ctx context.Context, p *project.Project, open []registry.Plugin, wanted []project.VariableRequest, yes bool) (bool, error) {
	if err := a.Printf("%s", TrustPage(p, open)+variablesPage(wanted)); err != nil {
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
	if err := a.trustVariables(p, wanted); err != nil || len(open) == 0 {
		return err == nil, err
	}
	return true, a.trustPlugins(p, open)
}

// trustVariables trusts the uses of variables as they were shown.
func (a *App) trustVariables(p *project.Project, shown []project.VariableRequest) error {
	if len(shown) == 0 {
		return nil
	}
	store, err := p.TrustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	var names []string
	for _, r := range shown {
		items, names = append(items, r.Item(p.Env.Now().UTC().Truncate(time.Second))), append(names, r.Name)
	}
	if err := store.Add(items...); err != nil {
		return err
	}
	return a.Printf("trusted: %s\n", terminal.Printable(strings.Join(names, " ")))
}

// trustPlugins trusts plugins as they were shown, and pins them in the lock.
func (a *App) trustPlugins(proj *project.Project, shown []registry.Plugin) error {
	store, err := proj.TrustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	var names []string
	for _, p := range shown {
		items = append(items, trust.Item{
			Kind: trust.KindPlugin, Name: p.ID(), What: proj.Near(p.File), SHA256: p.SHA256, Since: proj.Env.Now().UTC().Truncate(time.Second),
		})
		names = append(names, p.ID())
	}
	if err := store.Add(items...); err != nil {
		return err
	}
	if err := a.Printf("trusted: %s\n", strings.Join(names, " ")); err != nil {
		return err
	}
	if err := worktree.EnsureCovenDir(proj.Repo.Root); err != nil {
		return err
	}
	wrote, err := registry.Pin(proj.Repo.Root, store, shown, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil || !wrote {
		return err
	}
	return a.Printf("wrote %s: commit it so that your team runs the same plugins\n", registry.LockFile)
}

// AdmitPlugins reports whether plugins may run. On a terminal it asks about those
// that only need a person's trust.
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

// variablesPage shows variables that are not trusted.
func variablesPage(wanted []project.VariableRequest) string {
	if len(wanted) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This repository uses variables from your environment. Programs that get them can send\n" +
		"them anywhere. You trust exactly these uses, in this repository only.\n\n")
	for _, r := range wanted {
		fmt.Fprintf(&b, "%s  %s\n  for     %s\n", r.Kind, terminal.Printable(r.Variable), terminal.Printable(r.Why))
		for _, use := range r.Uses {
			fmt.Fprintf(&b, "          %s\n", terminal.Clip(terminal.Printable(oneline.Of(use)), 160))
		}
		b.WriteString("\n")
	}
	return b.String()
}
