package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/session"
)

// nextDamaged is the command that helps with a damaged session.
func nextDamaged(e *session.DamagedError) string {
	dir := shellWord(filepath.Join(session.Dir, e.Session))
	switch {
	case errors.Is(e, event.ErrVersion):
		return "go install github.com/coven-run/coven/cmd/coven@latest"
	case errors.Is(e, fs.ErrPermission):
		return "chmod -R u+rwX " + dir
	}
	return "coven doctor --fix"
}

// damagedView is a damaged session as status lists it.
func damagedView(e *session.DamagedError) session.View {
	v := e.View()
	v.Next = nextDamaged(e)
	return v
}

// acceptCommand approves a change together with its open error findings.
func acceptCommand(v session.View) string {
	return "coven approve " + shellWord(v.Task) + " --accept-findings"
}

// unaccepted says why a change with open error findings is not approved, and names
// the findings.
func unaccepted(v session.View) string {
	noun := "findings"
	if len(v.Open) == 1 {
		noun = "finding"
	}
	return fmt.Sprintf("task %s has %d open error %s; without --accept-findings it does not land:\n%s",
		v.Task, len(v.Open), noun, openLines(v.Open))
}

// maxOpenLines is how many open findings a message lists.
const maxOpenLines = 20

// openLines lists open error findings, one per line, for a terminal.
func openLines(open []event.Finding) string {
	var lines []string
	for _, f := range open[:min(maxOpenLines, len(open))] {
		lines = append(lines, "  "+printable(findings.Line(f))+" ("+printable(f.Reviewer)+")")
	}
	if more := len(open) - maxOpenLines; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// stateText is a session's state in words: waiting (review).
func stateText(v session.View) string {
	v = v.Shown()
	if v.Reason != "" {
		return v.Status + " (" + v.Reason + ")"
	}
	return v.Status
}

// nextOf is the one command that goes on with a session; empty when it is over
// or at work.
func nextOf(v session.View) string {
	switch {
	case v.Damage != "" && v.Status != session.Running:
		return "coven cancel " + shellWord(v.Task)
	case heldByFindings(v):
		return "coven review " + shellWord(v.Task)
	case v.Next != "":
		return v.Next
	case v.Status == session.Interrupted:
		return "coven resume " + shellWord(v.Task)
	case v.Status == session.Failed, v.Status == session.Cancelled:
		return "coven run " + shellWord(v.Task)
	}
	return ""
}

// heldByFindings reports whether a session waits for a person because of open error
// findings.
func heldByFindings(v session.View) bool {
	return v.Status == session.Waiting && v.Reason == "review" && len(v.Open) > 0
}

// detailOf is why a session is in its state, in one line. Records of versions that
// did not hold a change for its findings do not name them.
func detailOf(v session.View) string {
	detail, open := oneLine(v.Detail), oneLine(findings.Summary(v.Open))
	if heldByFindings(v) && !strings.Contains(detail, open) {
		return open + "; " + detail
	}
	return detail
}
