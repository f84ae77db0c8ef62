package engine

import (
	"context"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// MergeInput is the input of a merge leaf.
type MergeInput struct {
	Strategy      string          `json:"strategy"`
	Message       string          `json:"message,omitempty"` // empty to derive it from the task and Summary
	Summary       string          `json:"summary,omitempty"` // summary of the first agent
	Checks        []check.Check   `json:"checks,omitempty"`
	Receipts      []event.Receipt `json:"receipts,omitempty"` // of the checks' last runs
	RequireReview bool            `json:"require_review"`
	// Reviewed lists the tree that the reviewers of each step saw last. An element is empty if that review
	// was incomplete.
	Reviewed []string `json:"reviewed,omitempty"`
	Push     bool     `json:"push,omitempty"` // the change is to be pushed while it waits
	// Chat means that the leaf also waits for the next message of a chat, before merging the target. Failed
	// is the reason why the chat's approved change did not land.
	Chat   bool   `json:"chat,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// PullRequest is the strategy of a change that lands with a pull request.
const PullRequest = grimoires.PullRequest

// maxFixes limits the attempts to fix checks that fail on the host of a pull request.
const maxFixes = 2

// fixTime limits the agent that fixes them.
const fixTime = 30 * time.Minute

// maxResolves limits the attempts to resolve the conflicts of one landing.
const maxResolves = 2

// resolveTime limits the agent that resolves a conflict.
const resolveTime = 15 * time.Minute

// mergeStep is a step that lands the task's branch on its target.
type mergeStep struct {
	name string
	spec *grimoires.Merge
	plan *grimoires.Plan
}

// Run lands the change. With resolve, an agent resolves conflicts; of a pull request, an agent also fixes the checks that fail on its
// host. The result is checked and landed like any other change.
func (m mergeStep) Run(ctx context.Context, s *State) (Outcome, error) {
	outer, tolerant, attempt := s.at, s.tolerant, s.attempt
	name := s.name(m.name)
	defer func() { s.at, s.tolerant, s.attempt = outer, tolerant, attempt }()
	resolves, fixes := 0, 0
	if m.spec.Resolve {
		resolves = maxResolves
	}
	if m.spec.Strategy == PullRequest {
		fixes = maxFixes
	}
	for n := 1; ; n++ {
		s.tolerant = tolerant || resolves > 0 || fixes > 0
		out, err := m.land(ctx, s)
		if err != nil {
			return out, err
		}
		s.at, s.attempt = outer.iteration(name, n), 1
		var last bool
		var solved Outcome
		switch failed := out.Result; {
		case failed.ErrorType == event.ErrorConflict && resolves > 0:
			resolves--
			last = resolves == 0
			solved, err = m.resolve(ctx, s, failed.Files)
		case failed.ErrorType == event.ErrorCI && fixes > 0:
			fixes--
			last = fixes == 0
			solved, err = m.fix(ctx, s, failed.Output)
		default:
			return out, nil
		}
		if err != nil || solved.ends() {
			return solved, err
		}
		if solved.Verdict != Passed && last {
			solved.Result.Error = out.Result.Error + "; an agent did not resolve it: " + solved.Result.Error
			return solved, nil
		}
		s.at = outer.iteration(name, n+1)
	}
}

// ResolveStep is the name of the step that a merge adds when an agent resolves its conflicts.
const ResolveStep = "resolve"

// resolve runs an agent that merges the target into the branch.
func (m mergeStep) resolve(ctx context.Context, s *State, files []string) (Outcome, error) {
	prompt, err := m.plan.RenderPrompt(grimoires.ResolvePrompt, s.Data(map[string]any{
		"files": strings.Join(files, "\n"), "target": event.BranchName(m.plan.Target),
	}))
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	work := callStep{ResolveStep, Call{Agent: &AgentInput{Prompt: prompt, Model: m.plan.Model, Resolve: true}}}
	return unreserved{timeout{work, ResolveStep, resolveTime}}.Run(ctx, s)
}

// FixStep is the name of the step that a merge adds when an agent fixes checks that fail on the host of a pull request.
const FixStep = "fix-ci"

// fix runs an agent that fixes failed checks.
func (m mergeStep) fix(ctx context.Context, s *State, output string) (Outcome, error) {
	prompt, err := m.plan.RenderPrompt(grimoires.FixChecksPrompt, s.Data(map[string]any{"output": output}))
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	input := AgentInput{Model: m.plan.Model}
	if s.agent.path != "" {
		input = s.agent.input
	}
	input.Prompt, input.Continues, input.ExpectChanges, input.Resolve = prompt, "", true, false
	return unreserved{timeout{callStep{FixStep, Call{Agent: &input}}, FixStep, fixTime}}.Run(ctx, s)
}

// callStep is a step that makes a single call.
type callStep struct {
	name string
	call Call
}

// Run implements Step.
func (c callStep) Run(ctx context.Context, s *State) (Outcome, error) {
	return s.call(ctx, c.name, c.call)
}

// land calls the leaf once.
func (m mergeStep) land(ctx context.Context, s *State) (Outcome, error) {
	message := ""
	if m.spec.Message != "" {
		text, err := tmpl.Text(m.name+" message", m.spec.Message, s.Data(nil))
		if err != nil {
			return Outcome{}, &templateError{err}
		}
		message = text
	}
	return s.call(ctx, m.name, Call{Merge: &MergeInput{
		Strategy: m.spec.Strategy, Message: message, Summary: s.summary,
		Checks: m.plan.ChecksOf(m.spec), Receipts: s.currentReceipts(), RequireReview: m.spec.RequireReview, Reviewed: s.reviewedTrees(), Push: m.spec.Push,
	}})
}
