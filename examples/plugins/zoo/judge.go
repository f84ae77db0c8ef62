package main

import (
	"context"
	"strings"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// judge is an arbiter implemented by one function.
type judge func(question arbiter.Question) arbiter.Decision

// Decide implements arbiter.Arbiter.
func (j judge) Decide(_ context.Context, question arbiter.Question, _ hostservice.Services) (arbiter.Decision, error) {
	return j(question), nil
}

// judges lists the arbiters: coven-arbiter-<beast>.
var judges = map[string]judge{
	"well":   func(arbiter.Question) arbiter.Decision { return arbiter.Decision{} },
	"eager":  func(arbiter.Question) arbiter.Decision { return arbiter.Decision{Continue: true, Reason: "once more"} },
	"twice":  twice,
	"never":  func(arbiter.Question) arbiter.Decision { hang(); panic("it does not end") },
	"orator": func(arbiter.Question) arbiter.Decision { return arbiter.Decision{Reason: strings.Repeat("z", 1<<20)} },
}

// twice continues the loop two times.
func twice(q arbiter.Question) arbiter.Decision {
	if q.Round > 2 {
		return arbiter.Decision{Reason: "that is enough"}
	}
	return arbiter.Decision{Continue: true, Reason: "once more"}
}

// critic always fails the change, with a finding.
func critic(_ context.Context, change reviewer.Change, _ hostservice.Services) (reviewer.Review, error) {
	return reviewer.Review{Verdict: reviewer.Fail, Findings: []reviewer.Finding{
		{Severity: reviewer.Error, File: change.Files[0].Path, Line: 1, Message: "not good enough"},
	}}, nil
}

// flatterer returns pass together with an error finding.
func flatterer(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	r, err := critic(ctx, change, host)
	r.Verdict = reviewer.Pass
	return r, err
}
