// Package rules is an arbiter plugin with fixed rules: errors justify another round, warnings do not, and a
// round with the same findings as the previous one ends the loop.
package rules

import (
	"context"
	"slices"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Arbiter decides according to fixed rules.
type Arbiter struct{}

// Decide implements arbiter.Arbiter.
func (Arbiter) Decide(_ context.Context, q arbiter.Question, _ hostservice.Services) (arbiter.Decision, error) {
	if !grave(q.Opinions) {
		return arbiter.Decision{Reason: "no errors left"}, nil
	}
	if n := len(q.History); n > 0 && slices.Equal(remarks(q.Opinions), remarks(q.History[n-1].Opinions)) {
		return arbiter.Decision{Reason: "stalemate: same findings as in the previous round"}, nil
	}
	return arbiter.Decision{Continue: true, Reason: "there are errors to fix"}, nil
}

// grave reports whether a reviewer found an error, or failed the change without any finding.
func grave(opinions []arbiter.Opinion) bool {
	return slices.ContainsFunc(opinions, func(o arbiter.Opinion) bool {
		return o.Verdict == reviewer.Fail && len(o.Findings) == 0 ||
			slices.ContainsFunc(o.Findings, func(f reviewer.Finding) bool { return f.Severity == reviewer.Error })
	})
}

// remarks returns the sorted findings without line numbers, which change when other parts of a file are
// fixed.
func remarks(opinions []arbiter.Opinion) []string {
	var all []string
	for _, o := range opinions {
		if len(o.Findings) == 0 {
			all = append(all, o.Reviewer+"\x00"+string(o.Verdict))
		}
		for _, f := range o.Findings {
			all = append(all, o.Reviewer+"\x00"+string(f.Severity)+"\x00"+f.File+"\x00"+f.Message)
		}
	}
	slices.Sort(all)
	return all
}
