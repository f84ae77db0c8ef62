package engine

import (
	"context"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// AgentInput is the input of an agent leaf.
type AgentInput struct {
	Prompt        string   `json:"prompt"`
	Agent         string   `json:"agent,omitempty"`
	Model         string   `json:"model"`
	Provider      string   `json:"provider,omitempty"`
	Env           []string `json:"env,omitempty"` // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Workdir       string   `json:"workdir,omitempty"`
	ExpectChanges bool     `json:"expect_changes,omitempty"`
	Continues     string   `json:"continues,omitempty"`    // path of the leaf whose conversation to continue
	Conversation  string   `json:"conversation,omitempty"` // optional ID of the conversation to continue if that leaf has none
	Chat          bool     `json:"chat,omitempty"`         // a turn of a chat; the prompt is the person's message
	Resolve       bool     `json:"resolve,omitempty"`      // resolve a conflict with the target; coven first writes it to the worktree

	Parts []grimoires.PromptPart `json:"-"` // of the prompt, if it is long
}

// agentStep is a step that runs an agent.
type agentStep struct {
	name string
	spec *grimoires.Agent
	plan *grimoires.Plan
}

// Run renders the prompt and calls the leaf.
func (a agentStep) Run(ctx context.Context, s *State) (Outcome, error) {
	input := map[string]any{}
	for name, text := range a.spec.Input {
		value, err := tmpl.Text(a.name+" input "+name, text, s.Data(nil))
		if err != nil {
			return Outcome{}, &templateError{err}
		}
		input[name] = value
	}
	data := s.Data(input)
	prompt, err := a.plan.RenderPrompt(a.spec.Prompt, data)
	if err != nil {
		return Outcome{}, &templateError{err}
	}
	model := a.spec.Model
	if model == "" && (a.spec.Provider == "" || a.spec.Provider == a.plan.Provider) { // another provider has other models
		model = a.plan.Model
	}
	env, err := s.environment(a.name, a.spec.Env)
	if err != nil {
		return Outcome{}, err
	}
	return s.call(ctx, a.name, Call{Agent: &AgentInput{
		Prompt: prompt, Agent: a.spec.Agent, Model: model, Provider: a.spec.Provider, Env: env, Workdir: a.spec.Workdir,
		ExpectChanges: a.spec.ExpectChanges, Parts: a.plan.PromptParts(a.spec.Prompt, data, prompt),
	}})
}
