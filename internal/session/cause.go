package session

import (
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

const (
	maxCommand  = 80  // characters of a failed command in a reason
	maxLastLine = 160 // characters of its output line
)

// Cause returns why a session is blocked or has failed, including the report of its step: the failed
// command and the most informative line of its output, or the first open finding. If no step is the cause,
// it returns detail, the reason in one line.
func (v View) Cause(detail string) string {
	if v.Rejected {
		return detail
	}
	events, err := Events(v.Dir, event.StepCompleted)
	if err != nil {
		return detail
	}
	for _, e := range slices.Backward(events) {
		r := event.As[event.Result](e)
		if r.Error == "" || !strings.HasSuffix(detail, oneline.Of(r.Error)) {
			continue
		}
		return withCause(detail, r, v.Open)
	}
	return detail
}

// withCause adds the report of the failing step to the reason of a
func withCause(detail string, r event.Result, open []event.Finding) string {
	switch r.ErrorType {
	case event.ErrorProcessExit:
		if n := len(r.Receipts); n > 0 {
			command := "the command " + oneline.Clip(r.Receipts[n-1].Command, maxCommand) + " ended"
			detail = strings.Replace(detail, "the command ended", command, 1)
		}
		if last := informativeLine(r.Output); last != "" {
			detail += ": " + last
		}
	case event.ErrorFindings:
		if text := oneline.Of(findings.Summary(open)); text != "" && !strings.Contains(detail, text) {
			detail += ": " + text
		}
	}
	return detail
}

// place matches a file with a line number, as compilers and tests print it.
var place = lazyregexp.New(`(^|[\s("])[^\s:("]+\.\w+:\d+\b`)

// informativeLine returns the last line of an output that names a line of a file, or the last line if there is
// none, clipped. Many test runners end with "FAIL".
func informativeLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if place.MatchString(lines[i]) {
			return oneline.Clip(lines[i], maxLastLine)
		}
	}
	return oneline.Clip(lines[len(lines)-1], maxLastLine)
}
