package engine

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// given is a step that does not run: the plan has its result.
type given struct {
	name, output string
	result       grimoires.Given
}

// Run implements Step.
func (g given) Run(_ context.Context, s *State) (Outcome, error) {
	if !g.result.Ran {
		s.skipped(g.name, g.output)
		return Outcome{Verdict: Skipped}, nil
	}
	of := g.result
	var outputs map[string]any
	_ = json.Unmarshal([]byte(of.Outputs), &outputs) // empty for none
	r := event.Result{
		OK: of.OK, Output: of.Output, Outputs: outputs, Summary: of.Summary, Error: of.Error,
		ExitCode: of.ExitCode, Commit: of.Commit, Files: of.Files, Agent: of.Agent,
	}
	s.add(r)
	s.setResult(g.name, g.output, r)
	return Outcome{Verdict: Passed, Result: r}, nil
}

// errNotRecorded ends a run of recorded leaves.
var errNotRecorded = errors.New("the leaf has no recorded result")

type onlyRecorded struct{}

// Do implements Leaves.
func (onlyRecorded) Do(context.Context, Call) (event.Result, error) {
	return event.Result{}, errNotRecorded
}

// Given returns the results of the steps that ran in a session up to the last of the events, by the names of the steps.
func Given(ctx context.Context, plan *grimoires.Plan, events []event.Event) (map[string]grimoires.Given, error) {
	var h History
	h.Read(events)
	s := NewState(NewReplay(&h, onlyRecorded{}, Clock{}, nil), plan, Options{})
	if _, err := Build(plan).Run(ctx, s); err != nil && !errors.Is(err, errNotRecorded) {
		return nil, err
	}
	all := map[string]grimoires.Given{}
	for name, r := range s.results {
		outputs := ""
		if len(r.Outputs) > 0 {
			outputs = tmpl.JSON(r.Outputs)
		}
		all[name] = grimoires.Given{
			Ran: true, OK: r.OK, Output: r.Output, Outputs: outputs, Summary: r.Summary, Error: r.Error,
			ExitCode: r.ExitCode, Commit: r.Commit, Files: r.Files, Agent: r.Agent,
		}
	}
	return all, nil
}
