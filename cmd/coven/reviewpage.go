package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/worktree"
)

func newReview(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "review [TASK]",
		Short: "Show what a person decides on: what was done, what was proven, the diff",
		Long: `Show the page that a person decides on: what the task asked for and what the
agent says, warnings, the receipts of the checks, what it cost, and the diff. On a
terminal it opens in your pager ($PAGER) and then asks. Without TASK: list the
changes that wait for a review.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeTasks(waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.listReviews(cmd.Context(), asJSON)
			}
			return a.atDesk(cmd.Context(), func(d *desk) error { return a.reviewTask(cmd.Context(), d, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) listReviews(ctx context.Context, asJSON bool) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	views, broken := session.List(h.repo.Root)
	a.explain(broken)
	asked := []session.View{}
	for _, v := range views {
		if v.Status == session.Waiting && v.Reason == event.WaitReview {
			asked = append(asked, v)
		}
	}
	switch {
	case asJSON:
		return a.sayJSON(asked)
	case len(asked) == 0:
		return a.say("nothing waits for a review\n  next: coven status\n")
	}
	return a.statusTable(asked)
}

func (a *app) reviewTask(ctx context.Context, d *desk, id string, asJSON bool) error {
	p, err := d.page(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.sayJSON(p)
	}
	color := a.interactive && a.getenv("NO_COLOR") == ""
	if err := a.page(ctx, p.text(color)); err != nil {
		return err
	}
	if !a.interactive || p.View.Status != session.Waiting || p.View.Reason != event.WaitReview {
		return a.say("  next: %s\n", afterPage(p.View))
	}
	return a.askAndDo(ctx, d, p.View, p.Diff.PatchID)
}

// afterPage is the next command for a person who has read the page of v.
func afterPage(v session.View) string {
	switch {
	case heldByFindings(v):
		return acceptCommand(v)
	case v.Status == session.Waiting && v.Reason == event.WaitReview:
		return "coven approve " + shellword.Word(v.Task)
	}
	return nextOf(v)
}

// askAndDo asks about a change that waits, and does as it is told. patch is what
// the person has seen.
func (a *app) askAndDo(ctx context.Context, d *desk, v session.View, patch string) error {
	answer, err := a.question(ctx, d, v)
	switch {
	case err != nil:
		return err
	case answer.verdict == approved:
		return outcome(d.approveNow(ctx, v, patch))
	case answer.verdict == rejected:
		return a.reject(ctx, d, v, answer.reason, worktree.RemoveRequest{})
	}
	return exit.Status(exit.Person)
}

func (p page) text(color bool) string {
	v := p.View
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s", terminal.Printable(v.Task), terminal.Printable(v.Info.Query), stateText(v))
	if v.Detail != "" {
		fmt.Fprintf(&b, ": %s", terminal.Printable(detailOf(v)))
	}
	fmt.Fprintf(&b, "\nsession %s, onto %s\n", v.ID, terminal.Printable(strings.TrimPrefix(v.Info.Target, "refs/heads/")))
	if v.Summary != "" {
		fmt.Fprintf(&b, "\nThe agent says:\n  %s\n", terminal.Printable(oneline.Of(v.Summary)))
	}
	if v.Review != nil && strings.TrimSpace(v.Review.Message) != "" {
		b.WriteString("\nLands as:\n")
		for line := range strings.Lines(strings.TrimSpace(v.Review.Message)) {
			b.WriteString(strings.TrimRight("  "+terminal.Printable(strings.TrimRight(line, "\n")), " ") + "\n")
		}
	}
	b.WriteString("\nFindings:\n" + p.findingsText())
	b.WriteString("\nChecks:\n" + p.proven())
	if u := v.Usage; u.InputTokens+u.OutputTokens > 0 {
		fmt.Fprintf(&b, "\nUsed: %s, $%.2f, %s at work\n", terminal.Tokens(u.Tokens()), v.Used.USD, v.Active.Round(time.Second))
	}
	b.WriteString("\nChanges:\n" + p.stat() + "\n" + paint(safeDiff(p.Diff.Patch), color))
	return b.String()
}

// findingsText are those of the last review, what became of it, those of the rounds
// before in a line each, and coven's own warnings.
func (p page) findingsText() string {
	var b strings.Builder
	for i, r := range p.View.Rounds {
		if i < len(p.View.Rounds)-1 {
			fmt.Fprintf(&b, "  %s\n", terminal.Printable(roundLine(r)))
			continue
		}
		for line := range strings.Lines(findingsOf(r)) {
			fmt.Fprintf(&b, "  %s\n", terminal.Printable(strings.TrimRight(line, "\n")))
		}
		fmt.Fprintf(&b, "  %s\n", terminal.Printable(roundLine(r)))
		if r.Patch != "" && r.Patch != p.Diff.PatchID {
			b.WriteString("  warning: the change below is not what the reviewers saw\n")
		}
	}
	for _, w := range p.View.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", terminal.Printable(oneline.Of(w)))
	}
	if b.Len() == 0 {
		return "  none\n"
	}
	return b.String()
}

// findingsOf is what was found in a round, for people.
func findingsOf(r session.Round) string {
	text := findings.Text(findings.Opinions(r.Opinions))
	for _, o := range r.Opinions {
		if o.Truncated != "" {
			text += "\n" + o.Reviewer + " was not shown all: " + o.Truncated
		}
		for _, s := range o.Suggestions {
			text += "\n" + o.Reviewer + " suggests: " + oneline.Of(s)
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// roundLine is a round in a line: who said what, and what the arbiter said.
func roundLine(r session.Round) string {
	var parts []string
	for _, o := range r.Opinions {
		part := fmt.Sprintf("%s %s, %s", o.Reviewer, o.Verdict, findings.Counts([]arbiter.Opinion{o.Opinion}))
		if o.Flagged {
			part += ` (verdict "pass" contradicts an error finding)`
		}
		parts = append(parts, part)
	}
	if r.Error != "" {
		parts = append(parts, "it came to no end: "+oneline.Of(r.Error))
	}
	if r.Decided {
		decision := terminal.Decision(r.Continue, r.Reason)
		if !r.Continue {
			decision = "not actionable, says the arbiter: " + oneline.Of(r.Reason)
		}
		parts = append(parts, decision)
	}
	return terminal.StepName(r.Path) + ": " + strings.Join(parts, "; ")
}

func (p page) proven() string {
	if len(p.Checks) == 0 {
		return "  NONE ran\n"
	}
	var b strings.Builder
	for _, c := range p.Checks {
		about := "on exactly this tree"
		switch {
		case c.Current:
		case c.Check:
			about = "on an earlier tree: it runs again before it lands"
		default:
			about = "on an earlier tree: a step of the grimoire ran it, and it is no check"
		}
		fmt.Fprintf(&b, "  %s  %s, %s\n", terminal.Printable(c.Command), terminal.Receipt(c.Receipt), about)
	}
	return b.String()
}

func (p page) stat() string {
	var b strings.Builder
	for _, f := range p.Diff.Files {
		fmt.Fprintf(&b, "  %s %s  %s\n", f.Status, terminal.Printable(f.Path), sizeOf(f))
	}
	return b.String()
}

// paint colors a diff as git does.
func paint(patch string, color bool) string {
	if !color {
		return patch
	}
	lines := strings.Split(patch, "\n")
	for i, line := range lines {
		code := ""
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			code = "1"
		case strings.HasPrefix(line, "@@"):
			code = "36"
		case strings.HasPrefix(line, "+"):
			code = "32"
		case strings.HasPrefix(line, "-"):
			code = "31"
		}
		if code != "" {
			lines[i] = "\x1b[" + code + "m" + line + "\x1b[m"
		}
	}
	return strings.Join(lines, "\n")
}

// page shows a long text: in the user's pager on a terminal.
func (a *app) page(ctx context.Context, text string) error {
	pager := a.getenv("PAGER")
	if !a.interactive || pager == "cat" {
		return a.say("%s", text)
	}
	if pager == "" {
		pager = "less"
	}
	// A Ctrl-C in the pager is the pager's.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader([]byte(text)), os.Stdout, a.err
	cmd.Env = append(a.environ(), "LESS=FRX")
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return a.say("%s", text) // no pager is no reason to show nothing
	}
	return nil
}
