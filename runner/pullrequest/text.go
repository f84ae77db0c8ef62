package pullrequest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coven-run/coven/internal/attestation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner/engine"
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
	b.WriteString(l.receiptText(candidate))
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

// maxReceipt limits the size of a receipt in the text of a pull request, in bytes. GitHub accepts texts of 65,536 characters.
const maxReceipt = 16 << 10

// receiptText returns the receipt of the change at the tip of its branch, which is not signed: that of the landing is. A receipt that is
// large or has invisible characters is only named by its hash. It is empty if the journal does not have all that a receipt needs.
func (l *Landing) receiptText(candidate event.Landing) string {
	checks := l.Journal.All(event.CheckEnded)
	record := attestation.Record{
		Task: l.Task, Session: l.Session, Hide: func(text string) string { return text }, // the journal has no secrets
		Events: l.Journal.All(event.CheckEnded, event.StepCompleted, event.ReviewGiven, event.ReviewAnswered, event.SessionResumed, event.LandDone),
		Required: func(command string) bool {
			return slices.ContainsFunc(checks, func(e event.Event) bool { return event.As[event.Receipt](e).Command == command })
		},
	}
	candidate.Strategy = engine.PullRequest
	statement := record.Proposed(candidate)
	statement.Predicate.Setup = nil // the journal does not have it
	text, err := statement.Text()
	if err == nil {
		_, err = attestation.Parse(text)
	}
	if err != nil {
		return ""
	}
	shown := "```json\n" + text + "```"
	if len(text) > maxReceipt || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		shown = fmt.Sprintf("It has %d bytes and the sha256 `%x`.", len(text), sha256.Sum256([]byte(text)))
	}
	return fmt.Sprintf("<details><summary>Receipt of commit %s</summary>\n\n%s\n\nAfter the merge, `git fetch origin refs/notes/coven:refs/notes/coven` "+
		"fetches the receipt of the merged commit if it was published, and `coven verify COMMIT` verifies it.\n\n</details>\n\n", code(short(candidate.Tip)), shown)
}

// code returns a text as Markdown code in one line.
func code(text string) string { return "`" + strings.ReplaceAll(oneline.Of(text), "`", "'") + "`" }
