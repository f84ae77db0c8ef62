package runner

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/tmpl"
)

// ScriptInput is what a script leaf is given: a shell command, or checks.
type ScriptInput struct {
	Command string   `json:"command,omitempty"`
	Checks  []string `json:"checks,omitempty"`
	Env     []string `json:"env,omitempty"` // KEY=VALUE
}

// scriptStep is a step that runs a shell command or the plan's checks.
type scriptStep struct {
	name string
	spec grimoires.Script
	plan *grimoires.Plan
}

// Run renders the command and asks for it to be run.
func (c scriptStep) Run(ctx context.Context, s *State) (Outcome, error) {
	input := ScriptInput{}
	if c.spec.Checks {
		input.Checks = c.plan.Checks
	} else {
		command, err := tmpl.Command(c.name, c.spec.Command, s.Data(nil))
		if err != nil {
			return Outcome{}, fmt.Errorf("step %s: %w", c.name, err)
		}
		input.Command = command
	}
	for _, key := range sortedKeys(c.spec.Env) {
		value, err := tmpl.Text(c.name+" env "+key, c.spec.Env[key], s.Data(nil))
		if err != nil {
			return Outcome{}, fmt.Errorf("step %s: %w", c.name, err)
		}
		input.Env = append(input.Env, key+"="+value)
	}
	return s.call(ctx, c.name, Call{Script: &input})
}
