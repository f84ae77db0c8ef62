package grimoires

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/yamldoc"
)

type agentKeys struct {
	Step     stepKeys        `yaml:",inline"`
	Prompt   text            `yaml:"prompt" about:"name of a prompt; a text with more than one line is the prompt itself"`
	Spell    text            `yaml:"spell" about:"the same as prompt"`
	Input    map[string]text `yaml:"input" about:"templates by name, for the prompt: {{.input.NAME}}"`
	Agent    text            `yaml:"agent" about:"definition of the agent; build"`
	Model    text            `yaml:"model" about:"model of the agent"`
	Provider text            `yaml:"provider" about:"provider that runs the agent"`
	Expect   text            `yaml:"expect" oneof:"changes" about:"changes: an agent that changes nothing fails"`
	Env      map[string]text `yaml:"env" about:"templates by variable"`
	Workdir  text            `yaml:"workdir" about:"directory in the worktree"`
}

func (r *reader) agent(n yamldoc.Node, depth int) Step {
	var k agentKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, defaultAgent)
	prompt := k.Prompt
	switch {
	case prompt.Set() && k.Spell.Set():
		r.doc.Fail(k.Spell, "prompt and spell are two names of one key", "keep prompt")
	case k.Spell.Set():
		prompt = k.Spell
	case !prompt.Set():
		r.doc.Fail(n, fmt.Sprintf("the agent step %q has no prompt", s.Name), "the name of a prompt, or the prompt itself as a text with more than one line")
	}
	if prompt.Set() && strings.TrimSpace(prompt.Value) == "" {
		r.doc.Fail(prompt, "the prompt is empty", "")
	}
	s.Agent = &Agent{
		Prompt: prompt.Value, Input: r.texts(s.Name, k.Input), Agent: k.Agent.Value, Model: k.Model.Value,
		Provider: k.Provider.Value, Env: r.env(s.Name, k.Env), Workdir: r.workdir(k.Workdir),
	}
	r.doc.OneOf(k.Agent, Agents()...)
	r.use("provider", k.Provider)
	if k.Provider.Set() && !pluginRE.MatchString(k.Provider.Value) {
		r.doc.Fail(k.Provider, fmt.Sprintf("%q cannot be the name of a plugin", k.Provider.Value), "small letters, digits and -, the first a letter or digit")
	}
	s.Agent.ExpectChanges = k.Expect.Value == "changes"
	if prompt.Set() {
		r.found = append(r.found, template{promptTemplate, s.Name, prompt})
	}
	for _, name := range slices.Sorted(maps.Keys(k.Input)) {
		if !nameRE.MatchString(name) {
			r.doc.Fail(k.Input[name], fmt.Sprintf("%q cannot be a name", name), "letters, digits, - and _")
		}
	}
	return s
}

// texts reads a map of templates.
func (r *reader) texts(step string, in map[string]text) map[string]string {
	return r.templates(textTemplate, step, in)
}

func (r *reader) templates(kind templateKind, step string, in map[string]text) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out[key] = in[key].Value
		r.found = append(r.found, template{kind, step, in[key]})
	}
	return out
}

type scriptKeys struct {
	Step    stepKeys         `yaml:",inline"`
	Command text             `yaml:"command" about:"template of a command for sh -c; values are quoted for the shell"`
	Checks  yamldoc.At[bool] `yaml:"checks" about:"true: run the configured checks, in order"`
	Env     map[string]text  `yaml:"env" about:"templates by variable"`
	Workdir text             `yaml:"workdir" about:"directory in the worktree"`
}

func (r *reader) script(n yamldoc.Node, depth int) Step {
	var k scriptKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, defaultScript)
	switch {
	case k.Command.Set() && k.Checks.Value:
		r.doc.Fail(k.Checks, "a script step has a command or checks, not both", "")
	case !k.Command.Set() && !k.Checks.Value:
		r.doc.Fail(n, fmt.Sprintf("the script step %q has no command", s.Name), "command: a shell command, or checks: true")
	case k.Command.Set() && strings.TrimSpace(k.Command.Value) == "":
		r.doc.Fail(k.Command, "the command is empty", "")
	case k.Command.Set():
		r.found = append(r.found, template{commandTemplate, s.Name, k.Command})
	}
	if k.Checks.Value && k.Workdir.Set() {
		r.doc.Fail(k.Workdir, "checks run at the top of the worktree", "cd in the check's own command")
	}
	s.Script = &Script{Command: k.Command.Value, Checks: k.Checks.Value, Env: r.env(s.Name, k.Env), Workdir: r.workdir(k.Workdir)}
	return s
}

// env reads the variables that a step sets.
func (r *reader) env(step string, env map[string]text) map[string]string {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case !envRE.MatchString(name):
			r.doc.Fail(env[name], fmt.Sprintf("%q cannot be the name of a variable", name), "letters, digits and _")
		case strings.HasPrefix(name, "COVEN_"):
			r.doc.Fail(env[name], fmt.Sprintf("%q is coven's own variable", name), "")
		}
	}
	return r.templates(variableTemplate, step, env)
}

// workdir reads a directory inside the worktree.
func (r *reader) workdir(dir text) string {
	if dir.Set() && !filepath.IsLocal(dir.Value) {
		r.doc.Fail(dir, fmt.Sprintf("%q is not a directory inside the worktree", dir.Value), "a path relative to its top, without ..")
	}
	return dir.Value
}

type loopKeys struct {
	Step            stepKeys                   `yaml:",inline"`
	Steps           yamldoc.At[[]yamldoc.Node] `yaml:"steps" need:"true" about:"the steps to repeat"`
	MaxIterations   yamldoc.At[int]            `yaml:"max_iterations" about:"1 to 100; 3"`
	OnMaxIterations text                       `yaml:"on_max_iterations" oneof:"block|continue|fail|exit" about:"block; exit is fail"`
}

func (r *reader) loop(n yamldoc.Node, depth int) Step {
	var k loopKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, 0)
	s.Loop = &Loop{
		Steps: r.inner(n, k.Steps, depth+1), MaxIterations: r.iterations(k.MaxIterations),
		OnMaxIterations: onMaxIterations(k.OnMaxIterations),
	}
	return s
}

// inner reads the steps of a loop. depth is the number of loops around them.
func (r *reader) inner(at yamldoc.Place, nodes yamldoc.At[[]yamldoc.Node], depth int) []Step {
	if depth > maxDepth {
		r.doc.Fail(at, fmt.Sprintf("loops nest deeper than %d", maxDepth), "")
		return nil
	}
	return r.steps(at, nodes, depth)
}

type mergeKeys struct {
	Step          stepKeys             `yaml:",inline"`
	RequireReview yamldoc.At[bool]     `yaml:"require_review" about:"wait for coven approve; true"`
	Strategy      text                 `yaml:"strategy" oneof:"squash|merge|rebase" about:"squash"`
	Message       text                 `yaml:"message" about:"template of the commit message"`
	Checks        yamldoc.At[[]string] `yaml:"checks" about:"commands instead of the configured ones"`
	OnConflict    text                 `yaml:"on_conflict" oneof:"block|agent" about:"agent: an agent resolves conflicts with the target, at most twice"`
}

func (r *reader) merge(n yamldoc.Node, depth int) Step {
	var k mergeKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, 0)
	if depth > 0 {
		r.doc.Fail(k.Step.Type, "a merge step cannot be inside a loop", "put it after the loop")
	}
	if k.OnConflict.Value == resolveByAgent && k.Strategy.Value == "rebase" {
		r.doc.Fail(k.OnConflict, "on_conflict: agent creates a merge commit, which cannot be rebased", "strategy: squash or merge")
	}
	if k.Checks.Set() && len(k.Checks.Value) == 0 {
		r.doc.Fail(k.Checks, "the list of checks is empty", "leave checks out to use those of the configuration")
	}
	if k.Message.Set() {
		r.found = append(r.found, template{textTemplate, s.Name, k.Message})
	}
	s.Merge = &Merge{
		RequireReview: k.RequireReview.Or(true), Strategy: k.Strategy.Or(defaultStrategy),
		Message: k.Message.Value, Checks: k.Checks.Value, Resolve: k.OnConflict.Value == resolveByAgent,
	}
	return s
}
