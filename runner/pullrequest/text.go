package pullrequest

import (
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/text/oneline"
)

// text returns the text of a pull request in Markdown: the summary of the change, the checks that passed on exactly its tree, and the
// reviews.
func (l *Landing) text(candidate event.Landing) string {
	_, body, _ := strings.Cut(l.Work.Message(), "\n")
	var b strings.Builder
	if body = strings.TrimSpace(body); body != "" {
		b.WriteString(body + "\n\n")
	}
	b.WriteString(l.checksText(candidate.Tree))
	b.WriteString(l.reviewsText(candidate))
	fmt.Fprintf(&b, "Task %s, session %s. The branch is kept up to date by [coven](https://github.com/coven-run/coven).\n", code(l.Task), code(l.Session))
	return b.String()
}

// checksText lists the checks that passed on a tree.
func (l *Landing) checksText(tree string) string {
	var rows []string
	listed := map[string]bool{}
	for _, e := range l.Journal.All(event.CheckEnded) {
		r := event.As[event.Receipt](e)
		if r.Tree != tree || r.ExitCode != 0 || listed[r.Command] {
			continue
		}
		listed[r.Command] = true
		rows = append(rows, fmt.Sprintf("- %s passed in %s", code(r.Command), r.Duration.Round(time.Millisecond)))
	}
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("### Checks\n\nOn tree %s:\n\n%s\n\n", code(short(tree)), strings.Join(rows, "\n"))
}

// reviewsText describes the last opinion of each reviewer, and says if it is about another tree.
func (l *Landing) reviewsText(candidate event.Landing) string {
	last := map[string]event.Opinion{}
	var names []string
	for _, e := range l.Journal.All(event.ReviewGiven) {
		o := event.As[event.Opinion](e)
		if _, known := last[o.Reviewer]; !known {
			names = append(names, o.Reviewer)
		}
		last[o.Reviewer] = o
	}
	if len(names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("### Reviews\n\n")
	for _, name := range names {
		o := last[name]
		fmt.Fprintf(&b, "- %s: %s", oneline.Of(name), o.Verdict)
		if !l.evidence().Reaches(o.Tree, candidate) {
			b.WriteString(", before later changes")
		}
		if o.Summary != "" {
			b.WriteString(": " + oneline.Of(o.Summary))
		}
		b.WriteString("\n")
		for _, f := range o.Findings {
			b.WriteString("  - " + oneline.Of(findings.Line(event.Finding{Finding: f})) + "\n")
		}
	}
	return b.String() + "\n"
}

// code returns a text as Markdown code in one line.
func code(text string) string { return "`" + strings.ReplaceAll(oneline.Of(text), "`", "'") + "`" }
