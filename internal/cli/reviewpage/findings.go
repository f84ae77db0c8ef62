package reviewpage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// openText returns the section of the findings that block the approval, or "".
func openText(p control.Page) string {
	if len(p.View.Open) == 0 {
		return ""
	}
	var opinions []arbiter.Opinion
	for _, f := range p.View.Open {
		opinions = append(opinions, arbiter.Opinion{Reviewer: f.Reviewer, Findings: []reviewer.Finding{f.Finding}})
	}
	heading := "\nOpen findings, which block the approval unless you accept them (--accept-findings):\n"
	return heading + section(findings.Text(opinions))
}

// findingsText returns the other findings of the last review and their outcome, a line for each earlier
// round, and coven's own warnings.
func findingsText(p control.Page) string {
	var b strings.Builder
	for i, r := range p.View.Rounds {
		if i == len(p.View.Rounds)-1 {
			b.WriteString(section(findingsOf(r, p.View.Open)))
		}
		b.WriteString(section(roundLine(r)))
		if i == len(p.View.Rounds)-1 && r.Patch != "" && r.Patch != p.Diff.PatchID {
			b.WriteString("  warning: the change below is not what the reviewers saw\n")
		}
	}
	if len(p.View.Rounds) == 0 {
		b.WriteString("  not reviewed\n")
	}
	for _, w := range p.View.Warnings {
		b.WriteString(section("warning: " + oneline.Of(w)))
	}
	return b.String()
}

// findingsOf returns the findings of a round that are not open.
func findingsOf(r session.Round, open []event.Finding) string {
	opinions := findings.Opinions(r.Opinions)
	for i, o := range opinions {
		isOpen := func(f reviewer.Finding) bool {
			return slices.ContainsFunc(open, func(other event.Finding) bool { return other.Reviewer == o.Reviewer && other.Finding == f })
		}
		opinions[i].Findings = slices.DeleteFunc(slices.Clone(o.Findings), isOpen)
		if slices.ContainsFunc(open, func(f event.Finding) bool { return f.Reviewer == o.Reviewer }) {
			opinions[i].Verdict = "" // its reason is among the open findings
		}
	}
	text := findings.Text(opinions)
	for _, o := range r.Opinions {
		if o.Truncated != "" {
			text += "\n" + o.Reviewer + " did not see all of it: " + o.Truncated
		}
		for _, s := range o.Suggestions {
			text += "\n" + o.Reviewer + " suggests: " + oneline.Of(s)
		}
	}
	return text
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
		decision := terminal.Decision(r.Continue, r.LastRound, r.Reason)
		if !r.Continue {
			decision = "not actionable, according to the arbiter: " + oneline.Of(r.Reason)
		}
		parts = append(parts, decision)
	}
	return terminal.StepName(r.Path) + ": " + strings.Join(parts, "; ")
}
