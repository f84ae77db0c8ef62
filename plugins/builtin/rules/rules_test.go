package rules_test

import (
	"testing"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/builtin/rules"
	"github.com/coven-run/coven/plugins/reviewer"
)

func opinion(findings ...reviewer.Finding) []arbiter.Opinion {
	return []arbiter.Opinion{{Reviewer: "r", Verdict: reviewer.Fail, Findings: findings}}
}

func TestDecide(t *testing.T) {
	bug := reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 3, Message: "wrong"}
	moved, other := bug, bug
	moved.Line, other.Message = 9, "also wrong"
	warning := reviewer.Finding{Severity: reviewer.Warning, Message: "hm"}
	for name, test := range map[string]struct {
		now, before []arbiter.Opinion
		goOn        bool
		reason      string
	}{
		"errors":                  {now: opinion(bug, warning), goOn: true, reason: "there are errors to fix"},
		"only warnings":           {now: opinion(warning), reason: "no errors left"},
		"fail that says nothing":  {now: opinion(), goOn: true, reason: "there are errors to fix"},
		"the same":                {now: opinion(warning, bug), before: opinion(bug, warning), reason: "stalemate: same findings as in the previous round"},
		"the same, elsewhere":     {now: opinion(moved), before: opinion(bug), reason: "stalemate: same findings as in the previous round"},
		"another one":             {now: opinion(other), before: opinion(bug), goOn: true, reason: "there are errors to fix"},
		"one of two is fixed":     {now: opinion(bug), before: opinion(bug, other), goOn: true, reason: "there are errors to fix"},
		"fails twice for nothing": {now: opinion(), before: opinion(), reason: "stalemate: same findings as in the previous round"},
	} {
		q := arbiter.Question{Opinions: test.now}
		if test.before != nil {
			q.History = []arbiter.Round{{N: 1, Opinions: test.before}}
		}
		d, err := rules.Arbiter{}.Decide(t.Context(), q, nil)
		if err != nil || d.Continue != test.goOn || d.Reason != test.reason {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}
