package findings_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

func TestText(t *testing.T) {
	opinions := []arbiter.Opinion{
		{Reviewer: "one", Verdict: reviewer.Fail, Findings: []reviewer.Finding{
			{Severity: reviewer.Info, Message: "by the way"},
			{Severity: reviewer.Error, File: "a b.go", Line: 7, Message: "  first line\nsecond line\n", Suggestion: "do this\nthen that"},
		}},
		{Reviewer: "two", Verdict: reviewer.Pass, Findings: []reviewer.Finding{
			{Severity: reviewer.Warning, File: "b.go", Message: "odd"},
			{Severity: reviewer.Error, Message: "all of it"},
		}},
		{Reviewer: "three", Verdict: reviewer.Fail},
		{Reviewer: "four", Verdict: reviewer.Pass},
	}
	want := `error: a b.go:7: first line
    second line (one)
  suggestion: do this
    then that
error: all of it (two)
warning: b.go: odd (two)
info: by the way (one)
three says fail and names no finding`
	if got := findings.Text(opinions); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := findings.Text(nil); got != "" {
		t.Errorf("of nobody: %q", got)
	}
	if got := findings.Text(opinions[3:]); got != "" {
		t.Errorf("of the content: %q", got)
	}
}

func TestCounts(t *testing.T) {
	of := func(severities string) []arbiter.Opinion {
		all := []arbiter.Opinion{{}, {}}
		for i, word := range strings.Fields(severities) { // alternate between the two reviewers
			all[i%2].Findings = append(all[i%2].Findings, reviewer.Finding{Severity: reviewer.Severity(word)})
		}
		return all
	}
	for severities, want := range map[string]string{
		"":                            "nothing found",
		"error":                       "1 error",
		"warning error":               "1 error, 1 warning",
		"error error error":           "3 errors",
		"info warning warning":        "2 warnings, 1 remark",
		"info info error warning":     "1 error, 1 warning, 2 remarks",
		"warning warning error error": "2 errors, 2 warnings",
	} {
		if got := findings.Counts(of(severities)); got != want {
			t.Errorf("%q: %q, want %q", severities, got, want)
		}
	}
}
