package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/registry"
)

// headLines is how many lines of a script are shown.
const headLines = 10

// near is a file as a person knows it: below the root, if it is there.
func (h *house) near(file string) string {
	if rel, err := filepath.Rel(h.repo.Root, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

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
	fmt.Fprintf(&b, "  file    %s (%s, %s)\n", printable(h.near(p.File)), size(p.Size), nature(p))
	if real, err := filepath.EvalSymlinks(p.File); err == nil && real != p.File {
		fmt.Fprintf(&b, "          which is %s\n", printable(h.near(real)))
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
		fmt.Fprintf(&b, "  note    %s\n", printable(oneLine(p.Detail)))
	}
	lines := strings.Split(strings.TrimRight(p.Head, "\n"), "\n")
	for i, line := range lines[:min(len(lines), headLines)] {
		if p.Lines > 0 {
			fmt.Fprintf(&b, "  %4d  %s\n", i+1, clip(printable(line), 100))
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

// variablesPage shows variables that are not trusted.
func variablesPage(wanted []wish) string {
	if len(wanted) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("This repository wants values from your environment. What gets them can send them\n" +
		"anywhere. Trusted would be exactly these uses, in this repository.\n\n")
	for _, w := range wanted {
		fmt.Fprintf(&b, "%s  %s\n  for     %s\n", w.kind, printable(w.variable), printable(w.why))
		for _, use := range w.uses {
			fmt.Fprintf(&b, "          %s\n", clip(printable(oneLine(use)), 160))
		}
		b.WriteString("\n")
	}
	return b.String()
}
