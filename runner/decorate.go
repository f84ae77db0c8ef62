package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/tmpl"
)

// when runs a step only if a condition holds.
type when struct {
	step         Step
	name, output string
	condition    string
}

// Run implements Step.
func (w when) Run(ctx context.Context, s *State) (Outcome, error) {
	ok, err := tmpl.Bool(w.name+" when", w.condition, s.Data(nil))
	if err != nil {
		return Outcome{}, fmt.Errorf("step %s: %w", w.name, err)
	}
	if !ok {
		s.skipped(w.name, w.output)
		return Outcome{Verdict: Skipped}, nil
	}
	return w.step.Run(ctx, s)
}

// skip is a step that the plan leaves out.
type skip struct{ name, output string }

// Run implements Step.
func (k skip) Run(_ context.Context, s *State) (Outcome, error) {
	s.skipped(k.name, k.output)
	return Outcome{Verdict: Skipped}, nil
}

// keep takes a step's result into the state.
type keep struct {
	step         Step
	name, output string
}

// Run implements Step.
func (k keep) Run(ctx context.Context, s *State) (Outcome, error) {
	out, err := k.step.Run(ctx, s)
	if err == nil {
		s.done(k.name, k.output, out.Result)
	}
	return out, err
}

// retry tries a failed step again.
type retry struct {
	step Step
	more int
}

// Run implements Step.
func (r retry) Run(ctx context.Context, s *State) (Outcome, error) {
	tolerant := s.tolerant
	defer func() { s.retry, s.tolerant = 0, tolerant }()
	for s.retry = 0; ; s.retry++ {
		s.tolerant = tolerant || s.retry < r.more
		out, err := r.step.Run(ctx, s)
		if err != nil || out.Verdict != Failed || s.retry == r.more {
			return out, err
		}
	}
}

// settle says what a step's success or failure means for the run.
type settle struct {
	step     Step
	onFail   grimoires.OnFail
	exitLoop bool
}

// Run implements Step.
func (t settle) Run(ctx context.Context, s *State) (Outcome, error) {
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
}

func (e *OverTimeError) Error() string {
	if e.Step == "" {
		return fmt.Sprintf("the run took longer than %s", e.Limit)
	}
	return fmt.Sprintf("step %s took longer than %s", e.Step, e.Limit)
}

// timeout ends a step that takes too long. A leaf that was cut off has failed;
// a step around it that cannot start its next leaf has failed too.
type timeout struct {
	step  Step
	name  string
	limit time.Duration
}

// Run implements Step.
func (t timeout) Run(ctx context.Context, s *State) (Outcome, error) {
	over := &OverTimeError{Step: t.name, Limit: t.limit}
	ctx, cancel := withClock(ctx, t.limit, over)
	defer cancel()
	out, err := t.step.Run(ctx, s)
	if found := (*OverTimeError)(nil); errors.As(err, &found) && found == over {
		return Outcome{Verdict: Failed, Path: out.Path, Result: Result{Error: over.Error(), ErrorType: "timeout"}}, nil
	}
	return out, err
}
