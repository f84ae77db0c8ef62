package engine

import (
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
)

// chat is the tree of a chat. In each turn an agent answers a message, in the conversation of the previous
// turn. Then the merge step waits for the next message, or for approval of the change. A chat without a
// message yet begins with this wait, as turn 0.
type chat struct {
	plan   *grimoires.Plan
	answer grimoires.Step
	land   grimoires.Step
}

// newChat returns the tree for a plan's chat.
func newChat(plan *grimoires.Plan) Step {
	steps := plan.Grimoire.Steps
	return chat{plan, steps[0], steps[1]}
}

// Run implements Step.
func (c chat) Run(ctx context.Context, s *State) (Outcome, error) {
	outer := s.at
	defer func() { s.at, s.attempt = outer, 1 }()
	message, n := c.plan.Chat.Message, 1
	if message == "" {
		n = 0
	}
	for ; ; n++ {
		s.at, s.attempt = outer.iteration(event.TurnStep, n), 1
		if out, err := c.turn(ctx, s, n, message); err != nil || out.Verdict == Stopped {
			return out, err
		}
		out, err := c.next(ctx, s)
		if err != nil || out.Verdict != Revise {
			return out, err
		}
		if message, err = c.message(s, out.Result); err != nil {
			return s.templateFailure(c.land.Name, err), nil
		}
	}
}

// turn runs the agent to answer a message. It does nothing in turn 0.
func (c chat) turn(ctx context.Context, s *State, n int, message string) (Outcome, error) {
	if n == 0 {
		return Outcome{Verdict: Passed}, nil
	}
	return onFailure{timeout{answerStep{c, message}, c.answer.Name, c.answer.Timeout}, grimoires.Continue, false}.Run(ctx, s)
}

// next waits for the event after a turn. If an approved change did not land, it waits again.
func (c chat) next(ctx context.Context, s *State) (Outcome, error) {
	merge, _ := c.land.Kind.(*grimoires.Merge)
	input := MergeInput{Strategy: merge.Strategy, Checks: c.plan.ChecksOf(merge), RequireReview: true, Chat: true}
	for s.attempt = 1; ; s.attempt++ {
		input.Summary, input.Receipts = s.summary, s.currentReceipts()
		now := input
		out, err := s.call(ctx, c.land.Name, Call{Merge: &now})
		if out.Result.ErrorType == event.ErrorRevise {
			out.Verdict = Revise
		}
		if err != nil || out.Verdict != Failed {
			return out, err
		}
		input.Failed = out.Result.Error
	}
}

// message returns the message for the agent in the result of a merge step.
func (c chat) message(s *State, r event.Result) (string, error) {
	if len(r.Opinions) == 0 {
		return r.Output, nil
	}
	prompt, err := c.plan.RenderPrompt(grimoires.RevisePrompt, s.Data(map[string]any{
		"findings": findingsForPrompt(findings.Opinions(r.Opinions)),
	}))
	if err != nil {
		return "", &templateError{err}
	}
	return prompt, nil
}

// answerStep runs the agent to answer a message.
type answerStep struct {
	chat
	message string
}

// Run implements Step.
func (a answerStep) Run(ctx context.Context, s *State) (Outcome, error) {
	spec, _ := a.answer.Kind.(*grimoires.Agent)
	model := spec.Model
	if model == "" && (spec.Provider == "" || spec.Provider == a.plan.Provider) { // another provider has other models
		model = a.plan.Model
	}
	return s.call(ctx, a.answer.Name, Call{Agent: &AgentInput{
		Prompt: a.message, Agent: spec.Agent, Model: model, Provider: spec.Provider, Continues: s.agent.path, Conversation: a.plan.Chat.Conversation, Chat: true,
	}})
}
