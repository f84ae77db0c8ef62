// Package rules is the arbiter plugin that decides by rules alone: errors are
// worth another round, warnings are not, and the same findings as in the round
// before are a stalemate.
package rules

import (
	"context"
	"slices"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Arbiter decides by rules.
type Arbiter struct{}

// Decide implements arbiter.Arbiter.
func (Arbiter) Decide(_ context.Context, q arbiter.Question, _ hostservice.Services) (arbiter.Decision, error) {
	if !grave(q.Opinions) {
		return arbiter.Decision{Reason: "no errors are left"}, nil
	}
	if n := len(q.History); n > 0 && slices.Equal(remarks(q.Opinions), remarks(q.History[n-1].Opinions)) {
		return arbiter.Decision{Reason: "stalemate: the findings are those of the round before"}, nil
	}
	return arbiter.Decision{Continue: true, Reason: "there are errors to mend"}, nil
}

// grave says whether a reviewer found an error, or says fail without a finding
// that would say why.
func grave(opinions []arbiter.Opinion) bool {
	return slices.ContainsFunc(opinions, func(o arbiter.Opinion) bool {
		return o.Verdict == reviewer.Fail && len(o.Findings) == 0 ||
			slices.ContainsFunc(o.Findings, func(f reviewer.Finding) bool { return f.Severity == reviewer.Error })
	})
}

// remarks are what was found, in an order of their own. Lines are left out: what
// is mended elsewhere in a file moves them.
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
