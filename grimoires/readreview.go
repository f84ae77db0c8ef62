package grimoires

import (
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/yamldoc"
)

// judgeKeys is a reviewer or an arbiter given as a map.
type judgeKeys struct {
	Name   text            `yaml:"name" about:"name in the record; default: name of the plugin"`
	Plugin text            `yaml:"plugin" need:"true" about:"agent, command, rules (arbiters), or coven-reviewer-NAME, coven-arbiter-NAME"`
	Prompt text            `yaml:"prompt" about:"name of a prompt, or a text with more than one line; default for agent: review, for arbiters is-actionable"`
	With   map[string]text `yaml:"with" about:"options of the plugin"`
}

type reviewKeys struct {
	Step      stepKeys                   `yaml:",inline"`
	Reviewers yamldoc.At[[]yamldoc.Node] `yaml:"reviewers" need:"true" about:"reviewers, which run at the same time: names of plugins, or maps with plugin, name, prompt, with"`
}

func (r *reader) review(n yamldoc.Node, depth int) Step {
	var k reviewKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, defaultReview)
	s.Review = &Review{Reviewers: r.reviewers(n, s.Name, k.Reviewers)}
	return s
}

type agentLoopKeys struct {
	Step            stepKeys                   `yaml:",inline"`
	Steps           yamldoc.At[[]yamldoc.Node] `yaml:"steps" about:"of each round, before the review"`
	Reviewers       yamldoc.At[[]yamldoc.Node] `yaml:"reviewers" need:"true" about:"reviewers, which run at the same time: names of plugins, or maps with plugin, name, prompt, with"`
	Arbiter         yamldoc.Node               `yaml:"arbiter" about:"arbiter, which decides whether findings are worth another round: name of a plugin, or a map with plugin, prompt, with; rules"`
	Fix             text                       `yaml:"fix" about:"prompt of the agent that fixes findings; apply-review"`
	MaxIterations   yamldoc.At[int]            `yaml:"max_iterations" about:"rounds: 1 to 100; 3"`
	OnMaxIterations text                       `yaml:"on_max_iterations" oneof:"block|continue|fail|exit" about:"block; exit is fail"`
	Patience        yamldoc.At[int]            `yaml:"patience" about:"rounds in a row without fewer findings after which the loop ends like at max_iterations; any number"`
}

func (r *reader) agentLoop(n yamldoc.Node, depth int) Step {
	var k agentLoopKeys
	r.doc.DecodeNode(n, &k)
	s := r.common(n, k.Step, depth, 0)
	s.AgentLoop = &AgentLoop{
		Reviewers: r.reviewers(n, s.Name, k.Reviewers), Arbiter: Judge{Name: "rules", Plugin: "rules"}, Fix: k.Fix.Or(FixPrompt),
		MaxIterations: r.iterations(k.MaxIterations), OnMaxIterations: onMaxIterations(k.OnMaxIterations), Patience: k.Patience.Value,
	}
	if k.Arbiter.Set() {
		s.AgentLoop.Arbiter = r.judge(k.Arbiter, s.Name, "arbiter", ArbiterPrompt)
	}
	if k.Patience.Set() && (k.Patience.Value < 1 || k.Patience.Value > maxIterations) {
		r.doc.Fail(k.Patience, fmt.Sprintf("patience must be 1 to %d", maxIterations), "")
	}
	if k.Fix.Set() {
		r.found = append(r.found, template{promptTemplate, s.Name, k.Fix})
	}
	if k.Steps.Set() {
		s.AgentLoop.Steps = r.inner(n, k.Steps, depth+1)
		for i, inner := range s.AgentLoop.Steps {
			if i < len(k.Steps.Value) && slices.Contains(roundLeaves(), inner.Name) {
				r.doc.Fail(k.Steps.Value[i], fmt.Sprintf("each round of %q already has a part named %q", s.Name, inner.Name), "give the step another name")
			}
		}
	}
	if slices.ContainsFunc(s.AgentLoop.Steps, func(inner Step) bool { return inner.ExitLoop }) {
		r.doc.Fail(n, fmt.Sprintf("a step cannot exit %q: only its reviewers end an agent-loop", s.Name), "put the step into a loop")
	}
	return s
}

// roundLeaves returns the names of the parts of a round after its steps.
func roundLeaves() []string { return []string{"review", "arbiter", "fix"} }

// iterations reads the maximum number of iterations of a loop.
func (r *reader) iterations(n yamldoc.At[int]) int {
	if n.Set() && (n.Value < 1 || n.Value > maxIterations) {
		r.doc.Fail(n, fmt.Sprintf("max_iterations must be 1 to %d", maxIterations), "")
	}
	return n.Or(defaultIterations)
}

func onMaxIterations(word text) OnFail {
	if word.Value == "exit" {
		return Fail
	}
	return OnFail(word.Or(string(Block)))
}

func (r *reader) reviewers(at yamldoc.Place, step string, nodes yamldoc.At[[]yamldoc.Node]) []Judge {
	if len(nodes.Value) == 0 {
		r.doc.Fail(at, fmt.Sprintf("the step %q has no reviewers", step), "reviewers: [agent]")
	}
	var all []Judge
	for _, n := range nodes.Value {
		j := r.judge(n, step, "reviewer", ReviewPrompt)
		if slices.ContainsFunc(all, func(other Judge) bool { return other.Name == j.Name }) {
			r.doc.Fail(n, fmt.Sprintf("duplicate reviewer name %q", j.Name), "give one of them another name")
		}
		all = append(all, j)
	}
	return all
}

// judge reads a reviewer or an arbiter: the name of a plugin, or a map. prompt is the
// default prompt of a judging agent.
func (r *reader) judge(n yamldoc.Node, step, kind, prompt string) Judge {
	var k judgeKeys
	if n.IsMap() {
		r.doc.DecodeNode(n, &k)
	} else {
		r.doc.DecodeNode(n, &k.Plugin)
	}
	r.use(kind, k.Plugin)
	j := Judge{Name: k.Name.Or(k.Plugin.Value), Plugin: k.Plugin.Value, Prompt: k.Prompt.Value}
	switch {
	case !k.Plugin.Set():
		r.doc.Fail(n, fmt.Sprintf("a reviewer or arbiter of step %q has no plugin", step), "plugin: agent")
	case !pluginRE.MatchString(j.Plugin):
		r.doc.Fail(k.Plugin, fmt.Sprintf("%q cannot be the name of a plugin", j.Plugin), "small letters, digits and -, the first a letter or digit")
	case !nameRE.MatchString(j.Name):
		r.doc.Fail(k.Name, fmt.Sprintf("%q cannot be a name", j.Name), "letters, digits, - and _")
	}
	if j.Plugin == AgentJudge && !k.Prompt.Set() {
		j.Prompt = prompt
	}
	if k.Prompt.Set() {
		r.found = append(r.found, template{promptTemplate, step, k.Prompt})
	}
	for key, value := range k.With {
		if j.With == nil {
			j.With = map[string]string{}
		}
		if key == "prompt" {
			r.doc.Fail(value, "prompt is not an option of a plugin", "write prompt next to with")
		}
		j.With[key] = value.Value
	}
	r.options(n, kind, j.Plugin, k.With)
	return j
}
