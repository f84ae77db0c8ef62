package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coven-run/coven/internal/event"
)

// call asks for the work of a leaf and makes an outcome of its result.
func (s *State) call(ctx context.Context, name string, c Call) (Outcome, error) {
	c.Path, c.Tolerated, c.Budgets = s.at.leaf(name, s.attempt), s.tolerant, s.budgets
	if c.Step == "" {
		c.Step = name
	}
	r, err := s.leaves.Do(ctx, c)
	if err != nil {
		return Outcome{Path: c.Path}, err
	}
	s.done(r)
	if c.Review != nil {
		s.judged(c.Step, r)
	}
	out := Outcome{Verdict: Passed, Result: r, Path: c.Path}
	if !r.OK {
		out.Verdict = Failed
	}
	if r.Over != "" {
		return out, &OverTimeError{key: r.Over}
	}
	return out, nil
}

// journal is the record of a session.
type journal interface {
	Events() []event.Event
	Append(e event.Event, data any) error
}

// Recorded is Leaves with a memory: a leaf whose result is in the journal
// returns it and never runs again.
type Recorded struct {
	journal journal
	leaves  Leaves
	results map[string]event.Event // by path
	since   int64                  // number of the event since which the clocks of steps count
}

// Record gives leaves the memory of a journal.
func Record(j journal, leaves Leaves) *Recorded {
	r := &Recorded{journal: j, leaves: leaves, results: map[string]event.Event{}}
	for _, e := range remembered(j.Events()) {
		switch e.Type {
		case event.StepCompleted:
			r.results[e.Path] = e
		case event.SessionResumed:
			var again event.Resumed
			if e.Decode(&again) == nil && again.Retry != "" {
				r.since = e.Seq // a person wants it to go on: time begins anew
				maps.DeleteFunc(r.results, func(path string, _ event.Event) bool { return meant(again.Retry, path) })
			}
		}
	}
	return r
}

// Do implements Leaves.
func (r *Recorded) Do(ctx context.Context, c Call) (Result, error) {
	hash, err := c.hash()
	if err != nil {
		return Result{}, err
	}
	if e, ok := r.results[c.Path]; ok {
		result, err := replay(e, hash)
		if err == nil && e.Seq > r.since {
			charge(ctx, result.Used.Wall)
		}
		return result, err
	}
	result, err := r.work(ctx, c)
	if err != nil {
		return Result{}, err
	}
	result.Input, result.Tolerated = hash, c.Tolerated && !result.OK
	if err := r.journal.Append(event.Event{Type: event.StepCompleted, Path: c.Path}, result); err != nil {
		return Result{}, err
	}
	return r.recorded(c.Path, result)
}

// recorded is a result as the journal has it: what a replay will read.
func (r *Recorded) recorded(path string, result Result) (Result, error) {
	for _, e := range slices.Backward(r.journal.Events()) {
		if e.Type == event.StepCompleted && e.Path == path {
			result = Result{}
			return result, e.Decode(&result)
		}
	}
	return result, nil
}

// work has a leaf done. One whose time is up has failed.
func (r *Recorded) work(ctx context.Context, c Call) (Result, error) {
	timed, worked := stopwatch(ctx)
	result, err := r.leaves.Do(timed, c)
	over := (*OverTimeError)(nil)
	if errors.As(err, &over) {
		result, err = Result{Error: over.Error(), ErrorType: "timeout", Used: result.Used}, nil
	}
	if err != nil {
		return Result{}, err
	}
	if !result.OK && over == nil {
		errors.As(context.Cause(ctx), &over)
	}
	if over != nil {
		result.Over = over.key
	}
	result.Used.Wall += worked()
	return result, nil
}

// replay returns a recorded result, unless it answers another question.
func replay(e event.Event, hash string) (Result, error) {
	var result Result
	if err := e.Decode(&result); err != nil {
		return Result{}, err
	}
	if result.Input != hash {
		return Result{}, fmt.Errorf("step %s was recorded with another input (%.12s, now %.12s): the plan or a recorded value was changed; start the task anew with: coven reject and coven run", e.Path, result.Input, hash)
	}
	return result, nil
}

// hash is the fingerprint of what a leaf is given.
func (c Call) hash() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode the input of %s: %w", c.Path, err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}
