package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
)

// reviseTime limits the agent that makes the requested changes.
const reviseTime = 30 * time.Minute

// revisable runs the steps of a grimoire. When a person asks for changes at a merge step, the agent that
// did the work makes them in the same conversation. Then the steps after the work run again, up to the
// merge step, which asks again.
type revisable struct {
	steps []Step
	specs []grimoires.Step
	plan  *grimoires.Plan
}

// Run implements Step.
func (r revisable) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.at
	defer func() { s.at = outer }()
	last, work, revisions := Outcome{Verdict: Passed}, work{}, 0
	for i := 0; i < len(r.steps); i++ {
		out, err := r.step(ctx, s, i, &work)
		for err == nil && out.Verdict == Revise {
			revisions++
			s.at = append(outer[:len(outer):len(outer)], fmt.Sprintf("%s@%d", event.ReviseStep, revisions))
			if out, err = r.revise(ctx, s, work.agent, out.Result.Opinions); err == nil && out.Verdict == Passed {
				work.agent, i = s.agent, work.next
				out, err = r.step(ctx, s, i, &work)
			}
		}
		if err != nil || out.Verdict == Stopped {
			return out, err
		}
		if out.Verdict != Skipped {
			last = out
		}
	}
	return last, nil
}

// step runs the step with index i.
func (r revisable) step(ctx context.Context, s *State, i int, w *work) (Outcome, error) {
	_, merges := r.specs[i].Kind.(*grimoires.Merge)
	w.judged = w.judged || w.agent.path != "" && judges(r.specs[i])
	out, err := r.steps[i].Run(ctx, s)
	switch {
	case err == nil && merges && out.Verdict == Passed:
		*w = work{agent: s.agent, next: i + 1} // the change has landed, so earlier steps cannot run again
	case !w.judged && !merges && s.agent.path != w.agent.path:
		w.agent, w.next = s.agent, i+1
	}
	return out, err
}

// revise runs the agent that makes the requested changes.
func (r revisable) revise(ctx context.Context, s *State, worker agentLeaf, asked []event.Opinion) (Outcome, error) {
	agent := timeout{render{reviseStep{r.plan, worker, asked}, event.ReviseStep}, event.ReviseStep, reviseTime}
	out, err := onFailure{agent, grimoires.Block, false}.Run(ctx, s)
	if err == nil && out.Result.Summary != "" {
		s.summary = out.Result.Summary // the prompt asks for a summary of the whole change
	}
	return out, err
}

// reviseStep runs the agent that makes the requested changes, with the settings of the agent that did the
// work.
type reviseStep struct {
	plan   *grimoires.Plan
	worker agentLeaf
	asked  []event.Opinion
}

// Run implements Step.
func (r reviseStep) Run(ctx context.Context, s *State) (Outcome, error) {
	prompt, err := r.plan.RenderPrompt(grimoires.RevisePrompt, s.Data(map[string]any{
		"findings": findingsForPrompt(findings.Opinions(r.asked)),
	}))
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	input := AgentInput{Model: r.plan.Model}
	if r.worker.path != "" {
		input = r.worker.input
	}
	input.Prompt, input.Continues, input.ExpectChanges = prompt, r.worker.path, false
	return s.call(ctx, event.ReviseStep, Call{Agent: &input})
}

// work is the agent that did the work before a step, and the index of the step after that agent's.
type work struct {
	agent  agentLeaf
	next   int
	judged bool // a later step judged the work, so that agents after it only correct the work
}

// judges reports whether a step judges the work of an earlier agent.
func judges(s grimoires.Step) bool {
	switch k := s.Kind.(type) {
	case *grimoires.Loop, *grimoires.Review, *grimoires.AgentLoop:
		return true
	case *grimoires.Script:
		return k.Checks
	}
	return false
}
