// Package review holds the commands for deciding on a change: review,
// approve, reject and diff.
package review

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/scheduler"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins/arbiter"
)

// NewReview returns the command coven review.
func NewReview(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "review [TASK]",
		Short: "Show a change to decide on: summary, checks, findings and diff",
		Long: `Show everything needed to decide on a change: the request, the agent's summary,
findings and warnings, the checks that ran, the cost and the diff. On a terminal it
opens in your pager ($PAGER) and then asks. Without TASK: list the changes that wait
for a review.`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.Waiting),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listReviews(cmd.Context(), a, asJSON)
			}
			return a.WithController(cmd.Context(), func(c *control.Controller) error { return reviewTask(cmd.Context(), a, c, args[0], asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listReviews(ctx context.Context, a *cli.App, asJSON bool) error {
	p, err := a.Open(ctx)
	if err != nil {
		return err
	}
	waiting, damaged, err := control.Reviews(p)
	if err != nil {
		return err
	}
	a.PrintDamaged(damaged)
	switch {
	case asJSON:
		return a.PrintJSON(waiting)
	case len(waiting) == 0:
		return a.Printf("no change is waiting for review\n  next: coven status\n")
	}
	return a.StatusTable(waiting)
}

func reviewTask(ctx context.Context, a *cli.App, c *control.Controller, id string, asJSON bool) error {
	p, err := c.Page(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(p)
	}
	color := a.Interactive && a.Getenv("NO_COLOR") == ""
	if err := page(ctx, a, text(p, color)); err != nil {
		return err
	}
	if !a.Interactive || !control.WaitsForReview(p.View) {
		return a.Printf("  next: %s\n", p.Next())
	}
	return askAndDo(ctx, a, c, p.View, p.Diff.PatchID)
}

// askAndDo asks about a change and carries out the answer. patch is the ID of the patch
// that the person has seen.
func askAndDo(ctx context.Context, a *cli.App, c *control.Controller, v session.View, patch string) error {
	answer, err := a.Question(ctx, c, v)
	switch {
	case err != nil:
		return err
	case answer.Verdict == scheduler.Approved:
		return cli.ExitStatus(c.Approve(ctx, control.ApproveRequest{Task: v.Task, Seen: v, Patch: &patch, AcceptFindings: true}))
	case answer.Verdict == scheduler.Rejected:
		return reject(ctx, a, c, control.RejectRequest{Task: v.Task, Seen: v, Reason: answer.Reason})
	}
	return exit.Status(exit.Person)
}

func text(p control.Page, color bool) string {
	v := p.View
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n%s", terminal.Printable(v.Task), terminal.Printable(v.Info.Query), control.StateOf(v))
	if v.Detail != "" {
		fmt.Fprintf(&b, ": %s", terminal.Printable(control.DetailOf(v)))
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
	b.WriteString("\nFindings:\n" + findingsText(p))
	b.WriteString("\nChecks:\n" + proven(p))
	if u := v.Usage; u.InputTokens+u.OutputTokens > 0 {
		fmt.Fprintf(&b, "\nUsed: %s, $%.2f, %s at work\n", terminal.Tokens(u.Tokens()), v.Used.USD, v.Active.Round(time.Second))
	}
	b.WriteString("\nChanges:\n" + stat(p) + "\n" + paint(cli.SafeDiff(p.Diff.Patch), color))
	return b.String()
}

// findingsText returns the findings of the last review and what became of it, a line for
// each earlier round, and coven's own warnings.
func findingsText(p control.Page) string {
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

// findingsOf returns the findings of a round.
func findingsOf(r session.Round) string {
	text := findings.Text(findings.Opinions(r.Opinions))
	for _, o := range r.Opinions {
		if o.Truncated != "" {
			text += "\n" + o.Reviewer + " did not see all of it: " + o.Truncated
		}
		for _, s := range o.Suggestions {
			text += "\n" + o.Reviewer + " suggests: " + oneline.Of(s)
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// roundLine returns the verdicts of a round and the arbiter's decision in one line.
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
		parts = append(parts, "not finished: "+oneline.Of(r.Error))
	}
	if r.Decided {
		decision := terminal.Decision(r.Continue, r.Reason)
		if !r.Continue {
			decision = "not actionable, according to the arbiter: " + oneline.Of(r.Reason)
		}
		parts = append(parts, decision)
	}
	return terminal.StepName(r.Path) + ": " + strings.Join(parts, "; ")
}

func proven(p control.Page) string {
	if len(p.Checks) == 0 {
		return "  NONE ran\n"
	}
	var b strings.Builder
	for _, c := range p.Checks {
		about := "on exactly this tree"
		switch {
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
	var b strings.Builder
	for _, f := range p.Diff.Files {
		fmt.Fprintf(&b, "  %s %s  %s\n", f.Status, terminal.Printable(f.Path), cli.SizeOf(f))
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

// page prints a long text. On a terminal it uses the user's pager.
func page(ctx context.Context, a *cli.App, text string) error {
	pager := a.Getenv("PAGER")
	if !a.Interactive || pager == "cat" {
		return a.Printf("%s", text)
	}
	if pager == "" {
		pager = "less"
	}
	// A Ctrl-C is for the pager.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader([]byte(text)), os.Stdout, a.Err
	cmd.Env = append(a.Environ(), "LESS=FRX")
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return a.Printf("%s", text) // the pager has failed
	}
	return nil
}
