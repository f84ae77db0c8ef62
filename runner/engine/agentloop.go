package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ArbiterInput is the input of an arbiter leaf.
type ArbiterInput struct {
	Arbiter  Reviewer         `json:"arbiter"`
	Model    string           `json:"model"` // of agents that the plugin asks for
	Question arbiter.Question `json:"question"`
}

// agentLoop is a step that repeats review and fix until the reviewers pass the change,
// or the arbiter decides that the findings do not justify another round.
type agentLoop struct {
	name string
	spec *grimoires.AgentLoop
	body Step // runs in each round before the review
	plan *grimoires.Plan
}

// roundTime limits each review, each decision of the arbiter, and each fix.
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
		case rounds.stalled():
			why = fmt.Sprintf(noProgress, l.spec.Patience)
		}
		if why != "" {
			s.exit(l.name, ExitExhausted)
			out.Path = s.round()
			return exhausted(l.name, why, l.spec.OnMaxIterations, out), nil
		}
		if fixed, err := rounds.fix(ctx, s, out); err != nil || fixed.Verdict != Passed {
			return fixed, err
		}
	}
}

// rounds is the state of the rounds of an agent-loop.
type rounds struct {
	loop    agentLoop
	history []arbiter.Round
}

// next runs a round up to the arbiter's decision. If over is set, the loop ends. Otherwise out is the
// outcome of the review, and the arbiter has decided on another round.
func (r *rounds) next(ctx context.Context, s *State) (out Outcome, over bool, err error) {
	out, err = r.loop.body.Run(ctx, s)
	if err != nil || out.ends() {
		return out, true, err
	}
	out, err = r.review(ctx, s)
	switch {
	case err != nil:
		return out, true, err
	case out.Verdict == Passed:
		s.exit(r.loop.name, ExitContent)
		return out, true, nil
	case out.Result.ErrorType != event.ErrorFindings:
		return out, true, nil // the change was not reviewed
	}
	decision, err := r.decide(ctx, s, out.Result)
	switch {
	case err != nil || decision.Verdict != Passed:
		return decision, true, err
	case !decision.Result.Continue:
		s.exit(r.loop.name, ExitNotActionable)
		out.Verdict, out.Result.OK, out.Result.Error, out.Result.ErrorType = Passed, true, "", ""
		return out, true, nil
	}
	r.history = append(r.history, arbiter.Round{
		N: len(r.history) + 1, Output: s.lastMessage, Opinions: findings.Opinions(out.Result.Opinions), Reason: decision.Result.Output,
	})
	return out, false, nil
}

// review calls the reviewers. Findings do not stop the run, because the arbiter decides about them.
func (r *rounds) review(ctx context.Context, s *State) (Outcome, error) {
	reviewers, err := renderReviewers(r.loop.plan, r.loop.spec.Reviewers, s)
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
	given, err := renderReviewer(r.loop.plan, r.loop.spec.Arbiter, s)
	if err != nil {
		return Outcome{}, err
	}
	return unreserved{r.part("arbiter", Call{Arbiter: &ArbiterInput{
		Arbiter: given, Model: r.loop.plan.Model,
		Question: arbiter.Question{
			Output: s.lastMessage, Opinions: findings.Opinions(review.Opinions), History: r.history,
			Round: len(r.history) + 1, MaxRounds: r.loop.spec.MaxIterations, Options: given.Options,
		},
	}})}.Run(ctx, s)
}

// fix runs an agent to fix the findings of the review.
func (r *rounds) fix(ctx context.Context, s *State, review Outcome) (Outcome, error) {
	data := s.Data(map[string]any{
		"findings": findingsForPrompt(findings.Opinions(review.Result.Opinions)), "reason": r.history[len(r.history)-1].Reason,
	})
	prompt, err := r.loop.plan.RenderPrompt(r.loop.spec.Fix, data)
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	return r.part("fix", Call{Agent: &AgentInput{
		Prompt: prompt, Model: r.loop.plan.Model, Parts: r.loop.plan.PromptParts(r.loop.spec.Fix, data, prompt),
	}}).Run(ctx, s)
}

// part returns the step of one leaf of a round.
func (r *rounds) part(name string, c Call) Step {
	c.Step = r.loop.name + "/" + name
	return timeout{callStep{name, c}, name, roundTime}
}

// stalled reports whether the loop's patience is exhausted: whether as many rounds in a row found at least
// as much as the best round before them.
func (r *rounds) stalled() bool {
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

// weight is the number of findings of a round. Errors weigh more than any number of warnings.
type weight struct{ errors, warnings int }

func (w weight) less(than weight) bool {
	return w.errors < than.errors || w.errors == than.errors && w.warnings < than.warnings
}

func weightOf(r arbiter.Round) weight {
	var w weight
	for _, o := range r.Opinions {
		if o.Verdict == reviewer.Fail && len(o.Findings) == 0 {
			w.errors++ // a failure without findings counts as one error
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
