package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// ArbiterInput is what an arbiter leaf is given.
type ArbiterInput struct {
	Arbiter  Judge            `json:"arbiter"`
	Model    string           `json:"model"` // of agents that it asks
	Question arbiter.Question `json:"question"`
}

// agentLoop is a step that has the change reviewed and mended until the reviewers
// are content or the arbiter says that what is left is not worth another round.
type agentLoop struct {
	name string
	spec grimoires.AgentLoop
	body Step // of each round, before the review
	plan *grimoires.Plan
}

// roundTime is how long the review, the arbiter and the agent that mends may take,
// each in each round.
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
			s.saw(l.name, ExitExhausted)
			out.Path = s.round()
			return exhausted(l.name, why, l.spec.OnMaxIterations, out), nil
		}
		if mended, err := rounds.fix(ctx, s, out); err != nil || mended.Verdict != Passed {
			return mended, err
		}
	}
}

// rounds are those of one run of an agent-loop.
type rounds struct {
	loop    agentLoop
	history []arbiter.Round
}

// next plays a round up to the arbiter's word. over says that the loop ends here;
// otherwise the outcome is that of the review, and the arbiter wants another round.
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
		s.saw(r.loop.name, ExitContent)
		return out, true, nil
	case out.Result.ErrorType != FindingsType:
		return out, true, nil // nobody knows what the change is worth
	}
	decision, err := r.decide(ctx, s, out.Result)
	switch {
	case err != nil || decision.Verdict != Passed:
		return decision, true, err
	case !decision.Result.Continue:
		s.saw(r.loop.name, ExitNotActionable)
		out.Verdict, out.Result.OK, out.Result.Error, out.Result.ErrorType = Passed, true, "", ""
		return out, true, nil
	}
	r.history = append(r.history, arbiter.Round{
		N: len(r.history) + 1, Output: s.said, Opinions: Judged(out.Result.Opinions), Reason: decision.Result.Output,
	})
	return out, false, nil
}

// review has the change reviewed. What it finds stops nothing yet.
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

// decide asks the arbiter about a review.
func (r *rounds) decide(ctx context.Context, s *State, review Result) (Outcome, error) {
	given, err := renderJudge(r.loop.plan, r.loop.spec.Arbiter, s)
	if err != nil {
		return Outcome{}, err
	}
	return unreserved{r.part("arbiter", Call{Arbiter: &ArbiterInput{
		Arbiter: given, Model: r.loop.plan.Model,
		Question: arbiter.Question{
			Output: s.said, Opinions: Judged(review.Opinions), History: r.history,
			Round: len(r.history) + 1, MaxRounds: r.loop.spec.MaxIterations, Options: given.Options,
		},
	}})}.Run(ctx, s)
}

// fix has an agent mend what a review found.
func (r *rounds) fix(ctx context.Context, s *State, review Outcome) (Outcome, error) {
	prompt, err := r.loop.plan.RenderPrompt(r.loop.spec.Fix, s.Data(map[string]any{
		"findings": findingsForPrompt(Judged(review.Result.Opinions)), "reason": r.history[len(r.history)-1].Reason,
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

// patience reports whether it is at its end: that many rounds in a row found no less
// than the best round before them.
func (r *rounds) patience() bool {
	most := r.loop.spec.Patience
	if most == 0 || len(r.history) <= most {
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
	return since >= most
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
			w.errors++ // of which it says nothing
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
