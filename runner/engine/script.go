package engine

import (
	"context"
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// ScriptInput is the input of a script leaf: a shell command, or checks.
type ScriptInput struct {
	Command string        `json:"command,omitempty"`
	Checks  []check.Check `json:"checks,omitempty"`
	Env     []string      `json:"env,omitempty"` // KEY=VALUE, with marks for secrets: tmpl.Reveal
	Workdir string        `json:"workdir,omitempty"`
	TTY     bool          `json:"tty,omitempty"`
	Secrets []string      `json:"secrets,omitempty"` // names of the secrets that the command uses
}

// scriptStep is a step that runs a shell command or the plan's checks.
type scriptStep struct {
	name    string
	spec    *grimoires.Script
	command tmpl.Template
	secrets []string // names of the secrets that the command uses
	plan    *grimoires.Plan
}

// Run renders the command and calls the leaf.
func (c scriptStep) Run(ctx context.Context, s *State) (Outcome, error) {
	env, err := s.environment(c.name, c.spec.Env)
	if err != nil {
		return Outcome{}, err
	}
	input := ScriptInput{Env: env, Workdir: c.spec.Workdir, TTY: c.spec.TTY, Secrets: c.secrets}
	if c.spec.Checks {
		input.Checks = c.plan.Checks
	} else {
		command, err := c.command.Render(s.Data(nil))
		if err != nil {
			return Outcome{}, &templateError{err}
		}
		input.Command = command
	}
	return s.call(ctx, c.name, Call{Script: &input})
}

// environment renders the environment variables of a step.
func (s *State) environment(step string, env map[string]string) ([]string, error) {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(env)) {
		value, err := tmpl.Variable(step+" env "+key, env[key], s.Data(nil))
		if err != nil {
			return nil, &templateError{err}
		}
		all = append(all, key+"="+value)
	}
	return all, nil
}
