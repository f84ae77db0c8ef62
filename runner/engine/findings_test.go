package engine

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// A prompt has at most 64 KiB of findings. Its text is part of the recorded input of the
// agent that fixes them: a session of an older version keeps the words of its time.
func TestFindingsForPrompt(t *testing.T) {
	long := arbiter.Opinion{Reviewer: "lint", Verdict: reviewer.Fail}
	for range 100 {
		long.Findings = append(long.Findings, reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 1, Message: strings.Repeat("x", 1000)})
	}
	short := long
	short.Findings = long.Findings[:1]
	for v, want := range map[int]string{0: ": mend these first)", 1: ": fix these first)"} {
		if got := findingsForPrompt([]arbiter.Opinion{long}, v); len(got) > maxFindings+100 || !strings.HasSuffix(got, want) || !strings.Contains(got, " more lines are left out here") {
			t.Errorf("version %d: %d bytes, ends with %q", v, len(got), got[len(got)-80:])
		}
		if got := findingsForPrompt([]arbiter.Opinion{short}, v); strings.Contains(got, "left out") {
			t.Errorf("version %d: a short text is truncated: %q", v, got)
		}
	}
}
