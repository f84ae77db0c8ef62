package engine

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// A prompt contains at most 64 KiB of findings.
func TestFindingsForPrompt(t *testing.T) {
	long := arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Fail}
	for range 100 {
		long.Findings = append(long.Findings, reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 1, Message: strings.Repeat("x", 1000)})
	}
	short := long
	short.Findings = long.Findings[:1]
	if got := findingsForPrompt([]arbiter.Opinion{long}); len(got) > maxFindings+100 || !strings.HasSuffix(got, " more lines are left out here: fix these first)") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-80:])
	}
	if got := findingsForPrompt([]arbiter.Opinion{short}); strings.Contains(got, "left out") {
		t.Errorf("a short text is truncated: %q", got)
	}
}
