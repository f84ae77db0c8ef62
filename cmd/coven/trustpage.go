package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
)

// headLines is how many lines of a script are shown.
const headLines = 10

// trustPage shows plugins that are not trusted.
func (h *house) trustPage(open []registry.Plugin) string {
	if len(open) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This repository wants to run programs of its own. They are not fenced: they can do\n" +
		"what you can. Trusted would be exactly these bytes, in this repository.\n\n")
	for _, p := range open {
		b.WriteString(h.trustEntry(p) + "\n")
	}
	return b.String()
}

func (h *house) trustEntry(p registry.Plugin) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s\n", p.Kind, p.Name, novelty(p))
	fmt.Fprintf(&b, "  file    %s (%s, %s)\n", terminal.Printable(h.near(p.File)), terminal.Size(p.Size), nature(p))
	if real, err := filepath.EvalSymlinks(p.File); err == nil && real != p.File {
		fmt.Fprintf(&b, "          which is %s\n", terminal.Printable(h.near(real)))
	}
	fmt.Fprintf(&b, "  sha256  %.12s\n", p.SHA256)
	switch p.Hides {
	case "":
	case registry.FromCoven:
		b.WriteString("  hides   the one that is built in\n")
	default:
		fmt.Fprintf(&b, "  hides   the one of: %s\n", p.Hides)
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
		text += "\n  DOES NOT MATCH " + registry.LockFile + ": " + p.Detail + "; to trust it changes that"
	}
	return text
}

// nature is what a plugin's file looks like.
func nature(p registry.Plugin) string {
	switch p.Lines {
	case 0:
		return "a program"
	case 1:
		return "a script of 1 line"
	}
	return fmt.Sprintf("a script of %d lines", p.Lines)
}

// askTrust shows plugins and asks whether they are trusted. Where nobody can be
// asked the answer is no, unless it was given before.
func (a *app) askTrust(ctx context.Context, h *house, open []registry.Plugin, wanted []wish, yes bool) (bool, error) {
	if err := a.say("%s", h.trustPage(open)+variablesPage(wanted)); err != nil {
		return false, err
	}
	switch {
	case yes:
	case !a.interactive:
		return false, exit.Usagef("coven trust --yes", "nothing was trusted: there is no terminal to ask on")
	default:
		answer, err := a.ask(ctx, "trust these? [y/N] ")
		if err != nil {
			return false, err
		}
		if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
			return false, a.say("nothing was trusted\n")
		}
	}
	if err := a.trustVariables(h, wanted); err != nil || len(open) == 0 {
		return err == nil, err
	}
	return true, a.trustNow(h, open)
}

// trustVariables trusts the uses of variables as they were shown.
func (a *app) trustVariables(h *house, shown []wish) error {
	if len(shown) == 0 {
		return nil
	}
	store, err := h.trustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	var names []string
	for _, w := range shown {
		items, names = append(items, w.item(h.env.now().UTC().Truncate(time.Second))), append(names, w.name)
	}
	if err := store.Add(items...); err != nil {
		return err
	}
	return a.say("trusted: %s\n", terminal.Printable(strings.Join(names, " ")))
}

// trustNow trusts plugins as they were shown, and pins them in the lock.
func (a *app) trustNow(h *house, shown []registry.Plugin) error {
	store, err := h.trustStore()
	if err != nil {
		return err
	}
	var items []trust.Item
	var names []string
	for _, p := range shown {
		items = append(items, trust.Item{
			Kind: trust.KindPlugin, Name: p.ID(), What: h.near(p.File), SHA256: p.SHA256, Since: h.env.now().UTC().Truncate(time.Second),
		})
		names = append(names, p.ID())
	}
	if err := store.Add(items...); err != nil {
		return err
	}
	if err := a.say("trusted: %s\n", strings.Join(names, " ")); err != nil {
		return err
	}
	if err := worktree.EnsureCovenDir(h.repo.Root); err != nil {
		return err
	}
	wrote, err := registry.Pin(h.repo.Root, store, shown, runtime.GOOS+"/"+runtime.GOARCH)
	if err != nil || !wrote {
		return err
	}
	return a.say("wrote %s: commit it, and everybody runs the same\n", registry.LockFile)
}

// admitPlugins says whether plugins may run. On a terminal it asks about those
// that only need a person's trust.
func (a *app) admitPlugins(ctx context.Context, h *house, needs []plugins.Need) error {
	wanting, err := h.unfit(needs)
	if err == nil || len(wanting) == 0 || !a.interactive {
		return err
	}
	trusted, askErr := a.askTrust(ctx, h, wanting, nil, false)
	if askErr != nil {
		return askErr
	}
	if !trusted {
		return err
	}
	return h.mayRun(needs)
}

// variablesPage shows variables that are not trusted.
func variablesPage(wanted []wish) string {
	if len(wanted) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This repository wants values from your environment. What gets them can send them\n" +
		"anywhere. Trusted would be exactly these uses, in this repository.\n\n")
	for _, w := range wanted {
		fmt.Fprintf(&b, "%s  %s\n  for     %s\n", w.kind, terminal.Printable(w.variable), terminal.Printable(w.why))
		for _, use := range w.uses {
			fmt.Fprintf(&b, "          %s\n", terminal.Clip(terminal.Printable(oneline.Of(use)), 160))
		}
		b.WriteString("\n")
	}
	return b.String()
}
