package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ArbiterInput is the input of an arbiter leaf.
type ArbiterInput struct {
	Arbiter  Judge            `json:"arbiter"`
	Model    string           `json:"model"` // of agents that it asks
	Question arbiter.Question `json:"question"`
}

// agentLoop is a step that repeats review and fix until the reviewers pass the change
// or the arbiter decides that the open findings are not worth another round.
type agentLoop struct {
	name string
	spec *grimoires.AgentLoop
	body Step // of each round, before the review
	plan *grimoires.Plan
}

// roundTime limits the review, the arbiter and the fix, each in each round.
const roundTime = 15 * time.Minute

// Run implements Step.
func (l agentLoop) Run(ctx context.Context, s *State) (Outcome, error) {
	next, leave := s.enter(l.name, l.spec.MaxIterations)
	defer leave()
	rounds := rounds{loop: l}
	for n := 1; ; n++ {
		next(n)
		out, over, err := rounds.next(ctx, s)
		if err != nil || over {
			return out, err
		}
		why := ""
		switch {
		case n == l.spec.MaxIterations:
			why = limitOfIterations
		case rounds.patience():
			why = fmt.Sprintf("found no less in %d rounds", l.spec.Patience)
		}
		if why != "" {
			s.exited(l.name, ExitExhausted)
			out.Path = s.round()
			return exhausted(l.name, why, l.spec.OnMaxIterations, out), nil
		}
		if fixed, err := rounds.fix(ctx, s, out); err != nil || fixed.Verdict != Passed {
			return fixed, err
		}
	}
}

// rounds are those of one run of an agent-loop.
type rounds struct {
	loop    agentLoop
	history []arbiter.Round
}

// next runs a round up to the arbiter's decision. over means that the loop ends;
// otherwise the outcome is the review's, and the arbiter wants another round.
func (r *rounds) next(ctx context.Context, s *State) (out Outcome, over bool, err error) {
	out, err = r.loop.body.Run(ctx, s)
	if err != nil || out.Verdict == Stopped {
		return out, true, err
	}
	out, err = r.review(ctx, s)
	switch {
	case err != nil:
		return out, true, err
	case out.Verdict == Passed:
		s.exited(r.loop.name, ExitContent)
		return out, true, nil
	case out.Result.ErrorType != event.ErrorFindings:
		return out, true, nil // the change was not reviewed
	}
	decision, err := r.decide(ctx, s, out.Result)
	switch {
	case err != nil || decision.Verdict != Passed:
		return decision, true, err
	case !decision.Result.Continue:
		s.exited(r.loop.name, ExitNotActionable)
		out.Verdict, out.Result.OK, out.Result.Error, out.Result.ErrorType = Passed, true, "", ""
		return out, true, nil
	}
	r.history = append(r.history, arbiter.Round{
		N: len(r.history) + 1, Output: s.said, Opinions: findings.Opinions(out.Result.Opinions), Reason: decision.Result.Output,
	})
	return out, false, nil
}

// review calls the reviewers. Findings do not stop the run yet.
func (r *rounds) review(ctx context.Context, s *State) (Outcome, error) {
	reviewers, err := renderJudges(r.loop.plan, r.loop.spec.Reviewers, s)
	if err != nil {
		return Outcome{}, err
	}
	input := &ReviewInput{Reviewers: reviewers, Model: r.loop.plan.Model, Round: len(r.history) + 1}
	if n := len(r.history); n > 0 {
		input.Previous = r.history[n-1].Opinions
	}
	tolerant := s.tolerant
	defer func() { s.tolerant = tolerant }()
	s.tolerant = true
	return unreserved{r.part("review", Call{Review: input})}.Run(ctx, s)
}

// decide asks the arbiter whether to continue after a review.
func (r *rounds) decide(ctx context.Context, s *State, review event.Result) (Outcome, error) {
	given, err := renderJudge(r.loop.plan, r.loop.spec.Arbiter, s)
	if err != nil {
		return Outcome{}, err
	}
	return unreserved{r.part("arbiter", Call{Arbiter: &ArbiterInput{
		Arbiter: given, Model: r.loop.plan.Model,
		Question: arbiter.Question{
			Output: s.said, Opinions: findings.Opinions(review.Opinions), History: r.history,
			Round: len(r.history) + 1, MaxRounds: r.loop.spec.MaxIterations, Options: given.Options,
		},
	}})}.Run(ctx, s)
}

// fix has an agent fix what the review found.
func (r *rounds) fix(ctx context.Context, s *State, review Outcome) (Outcome, error) {
	prompt, err := r.loop.plan.RenderPrompt(r.loop.spec.Fix, s.Data(map[string]any{
		"findings": findingsForPrompt(findings.Opinions(review.Result.Opinions)), "reason": r.history[len(r.history)-1].Reason,
	}))
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	return r.part("fix", Call{Agent: &AgentInput{Prompt: prompt, Model: r.loop.plan.Model}}).Run(ctx, s)
}

// part is one leaf of a round.
func (r *rounds) part(name string, c Call) Step {
	c.Step = r.loop.name + "/" + name
	return timeout{called{name, c}, name, roundTime}
}

// patience reports whether the loop's patience is exhausted: that many rounds in a row
// found no less than the best round before them.
func (r *rounds) patience() bool {
	limit := r.loop.spec.Patience
	if limit == 0 || len(r.history) <= limit {
		return false
	}
	best := weightOf(r.history[0])
	since := 0
	for _, round := range r.history[1:] {
		since++
		if w := weightOf(round); w.less(best) {
			best, since = w, 0
		}
	}
	return since >= limit
}

// weight is what a round found: errors first, then warnings.
type weight struct{ errors, warnings int }

func (w weight) less(than weight) bool {
	return w.errors < than.errors || w.errors == than.errors && w.warnings < than.warnings
}

func weightOf(r arbiter.Round) weight {
	var w weight
	for _, o := range r.Opinions {
		if o.Verdict == reviewer.Fail && len(o.Findings) == 0 {
			w.errors++ // without naming one
		}
		for _, f := range o.Findings {
			switch f.Severity {
			case reviewer.Error:
				w.errors++
			case reviewer.Warning:
				w.warnings++
			}
		}
	}
	return w
}
