package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/tmpl"
)

// when runs a step only if a condition holds.
type when struct {
	step         Step
	name, output string
	condition    tmpl.Template
}

// Run implements Step.
func (w when) Run(ctx context.Context, s *State) (Outcome, error) {
	ok, err := w.condition.Bool(s.Data(nil))
	if err != nil {
		out := s.unrendered(w.name, err)
		out.Verdict, out.Status = Stopped, Blocked // nobody knows whether to run it
		return out, nil
	}
	if !ok {
		s.saw(w.name, ExitSkipped)
		s.skipped(w.name, w.output)
		return Outcome{Verdict: Skipped}, nil
	}
	return w.step.Run(ctx, s)
}

// render fails a step whose templates cannot be rendered: what they name is not
// there, and a person has to look.
type render struct {
	step Step
	name string
}

// Run implements Step.
func (r render) Run(ctx context.Context, s *State) (Outcome, error) {
	out, err := r.step.Run(ctx, s)
	if bad := (*templateError)(nil); errors.As(err, &bad) {
		return s.unrendered(r.name, bad), nil
	}
	return out, err
}

// templateError is what a step returns whose template cannot be rendered; its text
// names the step.
type templateError struct{ error }

// unrendered is the outcome of a step whose template cannot be rendered.
func (s *State) unrendered(name string, err error) Outcome {
	return Outcome{Verdict: Failed, Path: s.at.leaf(name, s.attempt), Result: Result{Error: err.Error(), ErrorType: "template"}}
}

// omitted is a step that the plan leaves out.
type omitted struct{ name, output string }

// Run implements Step.
func (k omitted) Run(_ context.Context, s *State) (Outcome, error) {
	s.skipped(k.name, k.output)
	return Outcome{Verdict: Skipped}, nil
}

// record takes a step's result into the state, under its name.
type record struct {
	step         Step
	name, output string
}

// Run implements Step.
func (k record) Run(ctx context.Context, s *State) (Outcome, error) {
	out, err := k.step.Run(ctx, s)
	if err == nil {
		s.named(k.name, k.output, out.Result)
		way := ExitPassed
		if out.Verdict == Failed || out.Verdict == Stopped {
			way = ExitFailed
		}
		s.saw(k.name, way)
	}
	return out, err
}

// retry tries a failed step again, after a pause that grows.
type retry struct {
	step    Step
	name    string
	more    int
	backoff time.Duration
}

// longestBackoff bounds the pause before another try.
const longestBackoff = 15 * time.Minute

// Run implements Step.
func (r retry) Run(ctx context.Context, s *State) (Outcome, error) {
	tolerant, attempt := s.tolerant, s.attempt
	defer func() { s.tolerant, s.attempt = tolerant, attempt }()
	for s.attempt = 1; ; s.attempt++ {
		s.tolerant = tolerant || s.attempt <= r.more
		out, err := r.step.Run(ctx, s)
		if err != nil || out.Verdict != Failed && out.Verdict != Stopped || s.attempt > r.more {
			return out, err
		}
		if err := r.pause(ctx, s); err != nil {
			return Outcome{Path: out.Path}, err
		}
	}
}

// pause lets time pass before the next try.
func (r retry) pause(ctx context.Context, s *State) error {
	if r.backoff == 0 {
		return nil
	}
	wait := min(r.backoff<<min(s.attempt-1, 30), longestBackoff)
	if wait <= 0 {
		wait = longestBackoff
	}
	outer := s.at
	defer func() { s.at = outer }()
	s.at = append(outer[:len(outer):len(outer)], r.name)
	_, err := s.call(ctx, "backoff", Call{Pause: &PauseInput{For: wait}})
	return err
}

// onFailure says what a step's success or failure means for the run.
type onFailure struct {
	step     Step
	onFail   grimoires.OnFail
	exitLoop bool
}

// Run implements Step.
func (t onFailure) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.tolerant
	s.tolerant = t.onFail == grimoires.Continue
	out, err := t.step.Run(ctx, s)
	s.tolerant = outer
	switch {
	case err != nil:
	case out.Verdict == Passed && t.exitLoop:
		out.Verdict = ExitLoop
	case out.Verdict == Failed && t.onFail == grimoires.Fail:
		out.Verdict, out.Status = Stopped, StatusFail
	case out.Verdict == Failed && t.onFail != grimoires.Continue:
		out.Verdict, out.Status = Stopped, Blocked
	}
	return out, err
}

// OverTimeError is the cause for which a step's context ends when its time is up.
type OverTimeError struct {
	Step  string // empty: the whole run
	Limit time.Duration
	key   string // path of the step whose time it was
}

func (e *OverTimeError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("the run took longer than %s", e.Limit)
	}
	return fmt.Sprintf("step %s took longer than %s", e.Step, e.Limit)
}

// wholeRun is the key of the run's time.
const wholeRun = "."

// timeout ends a step that takes too long. The leaf that is cut off, or that
// would have come next, has failed, and its result says whose time was up: so the
// steps around it up to that one end, now and whenever the run is replayed.
type timeout struct {
	step  Step
	name  string // empty: the whole run
	limit time.Duration
}

// Run implements Step.
func (t timeout) Run(ctx context.Context, s *State) (Outcome, error) {
	over := &OverTimeError{Step: t.name, Limit: t.limit, key: wholeRun}
	if t.name != "" {
		over.key = s.at.leaf(t.name, s.attempt)
	}
	ctx, cancel := withClock(ctx, t.limit, over)
	defer cancel()
	out, err := t.step.Run(ctx, s)
	if found := (*OverTimeError)(nil); errors.As(err, &found) && found.key == over.key {
		out.Verdict, out.Result.OK = Failed, false
		if out.Result.ErrorType = "timeout"; !strings.HasPrefix(out.Result.Error, over.Error()) {
			out.Result.Error = over.Error() // the leaf may say who was late
		}
		return out, nil
	}
	return out, err
}

// StepBudget is what the leaves inside a step may use together.
type StepBudget struct {
	Scope   string // path of the step, known when it runs; empty: the whole run
	Name    string // of the step; empty: the whole run
	Max     budget.Amount
	Reserve float64 // the share that this leaf may not use
}

// unreserved lets a step use what is kept for reviews and landing.
type unreserved struct{ step Step }

// Run implements Step.
func (u unreserved) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.budgets
	defer func() { s.budgets = outer }()
	s.budgets = slices.Clone(outer)
	for i := range s.budgets {
		s.budgets[i].Reserve = 0
	}
	return u.step.Run(ctx, s)
}

// budgeted lets a budget hold for a step, all its attempts and what is in it.
type budgeted struct {
	step Step
	StepBudget
}

// Run implements Step.
func (b budgeted) Run(ctx context.Context, s *State) (Outcome, error) {
	if b.Name != "" {
		b.Scope = s.at.of(b.Name)
	}
	outer := s.budgets
	s.budgets = append(outer[:len(outer):len(outer)], b.StepBudget)
	defer func() { s.budgets = outer }()
	return b.step.Run(ctx, s)
}
