package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/coven-run/coven/internal/event"
)

// call calls a leaf and returns the outcome for its result.
func (s *State) call(ctx context.Context, name string, c Call) (Outcome, error) {
	c.Path, c.Tolerated, c.Budgets = s.at.leaf(name, s.attempt), s.tolerant, s.budgets
	c.Step = cmp.Or(c.Step, name)
	r, err := s.leaves.Do(ctx, c)
	if err != nil {
		return Outcome{Path: c.Path}, err
	}
	s.add(r)
	if c.Agent != nil && !c.Agent.Resolve {
		s.agent = agentLeaf{c.Path, *c.Agent}
	}
	if c.Review != nil {
		s.addReview(c.Step, r)
	}
	out := Outcome{Verdict: Passed, Result: r, Path: c.Path}
	if !r.OK {
		out.Verdict = Failed
	}
	switch {
	case isFinal(r):
		out.Verdict, out.Status = Stopped, event.StatusBlocked
	case r.ErrorType == event.ErrorRevise:
		out.Verdict = Revise
	}
	if r.Over != "" {
		return out, &OverTimeError{key: r.Over}
	}
	return out, nil
}

// isFinal reports whether a result stops the run, regardless of how the steps around the leaf handle
// failures, because a person must decide how to continue.
func isFinal(r event.Result) bool {
	return r.ErrorType == event.ErrorRepository || r.ErrorType == event.ErrorBase
}

// hash returns a hash of a leaf's input.
func (c Call) hash() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode the input of %s: %w", c.Path, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
