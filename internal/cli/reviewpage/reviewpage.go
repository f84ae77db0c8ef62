// Package reviewpage formats the page on which a person decides about a change.
package reviewpage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Text returns the page with a person's comments, and a colored diff if color is set.
func Text(r review.Review, color bool) string {
	p, v := r.Page, r.Page.View
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s", terminal.Printable(v.Task), terminal.Printable(v.Info.Query), control.StateOf(v))
	if v.Detail != "" {
		fmt.Fprintf(&b, ": %s", terminal.Printable(control.DetailOf(v)))
	}
	fmt.Fprintf(&b, "\nsession %s, onto %s\n", v.ID, terminal.Printable(v.Info.TargetBranch()))
	b.WriteString(requestText(p))
	if v.Summary != "" {
		fmt.Fprintf(&b, "\nThe agent says:\n  %s\n", terminal.Printable(oneline.Of(v.Summary)))
	}
	if v.Review != nil && strings.TrimSpace(v.Review.Message) != "" {
		b.WriteString("\nLands as:\n")
		for line := range strings.Lines(strings.TrimSpace(v.Review.Message)) {
			b.WriteString(strings.TrimRight("  "+terminal.Printable(strings.TrimRight(line, "\n")), " ") + "\n")
		}
	}
	b.WriteString(openText(p) + "\nFindings:\n" + findingsText(p))
	if len(r.Comments) > 0 {
		b.WriteString("\nYour comments:\n" + commentsText(r))
	}
	b.WriteString("\nChecks:\n" + proven(p))
	if u := v.Usage; u.InputTokens+u.OutputTokens > 0 {
		fmt.Fprintf(&b, "\nUsed: %s, $%.2f, %s at work\n", terminal.Tokens(u.Tokens()), v.Used.USD, v.Active.Round(time.Second))
	}
	b.WriteString("\nChanges:\n" + stat(p) + "\n" + Diff(p.Diff.Patch, color))
	return b.String()
}

func proven(p control.Page) string {
	switch {
	case len(p.Checks) > 0:
	case p.View.Shown().Status == session.Running:
		step, action := control.Doing(p.View)
		return "  none yet: at work on " + terminal.Printable(cmp.Or(step, "its worktree")+terminal.Colon(action)) + "\n"
	default:
		return "  NONE ran\n"
	}
	var b strings.Builder
	for _, c := range p.Checks {
		about := "on exactly this tree"
		switch {
		case c.Current && !c.Check && c.ExitCode != 0:
			about += ": not a check of this session"
		case c.Current:
		case c.Check:
			about = "on an earlier tree: runs again before the change lands"
		default:
			about = "on an earlier tree: run by a step of the grimoire, not a check"
		}
		fmt.Fprintf(&b, "  %s  %s, %s\n", terminal.Printable(c.Command), terminal.Receipt(c.Receipt), about)
	}
	return b.String()
}

func stat(p control.Page) string {
	if len(p.Diff.Files) == 0 {
		return "  none\n"
	}
	var b strings.Builder
	for _, f := range p.Diff.Files {
		fmt.Fprintf(&b, "  %s %s  %s\n", f.Status, terminal.Printable(f.Path), SizeOf(f))
	}
	return b.String()
}

// longIndex matches the object IDs of a patch, which it has in full. git shows people abbreviated ones.
var longIndex = lazyregexp.New(`^index ([0-9a-f]{7})[0-9a-f]{33,57}\.\.([0-9a-f]{7})[0-9a-f]{33,57}`)

// Diff formats a diff for a terminal: it makes control characters visible, and with color it uses the
// colors of git.
func Diff(patch string, color bool) string {
	lines := strings.Split(safe(patch), "\n")
	for i, line := range lines {
		lines[i] = longIndex.ReplaceAllString(line, "index ${1}..${2}")
	}
	if !color {
		return strings.Join(lines, "\n")
	}
	for i, line := range lines {
		lines[i] = terminal.Color(line, terminal.DiffColor(line))
	}
	return strings.Join(lines, "\n")
}

// safe makes the control characters of a diff visible, except for tabs.
func safe(patch string) string {
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j := range cells {
			cells[j] = terminal.Printable(cells[j])
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// SizeOf returns the size of the change of a file, such as +3 -1.
func SizeOf(f control.FileChange) string {
	if f.Binary {
		return "binary"
	}
	return fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
}
