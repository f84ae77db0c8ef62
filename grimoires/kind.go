package grimoires

import (
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Kind is the work of a step: *Agent, *Script, *Loop, *Review, *AgentLoop or *Merge. The tags of its fields
// define its keys.
type Kind interface {
	// Type returns the type of the step in a grimoire.
	Type() string
	// read completes the decoded fields and reports errors in them.
	read(r *reader, at position)
	// words describes the step for a graph.
	words() []string
}

// Interfaces that only some kinds implement.
type (
	// container is implemented by kinds with inner steps.
	container interface{ inner() []Step }
	// reviewing is implemented by kinds with reviewers.
	reviewing interface{ reviewers() []Reviewer }
	// spawner is implemented by kinds that start agents, or whose reviewers are likely to.
	spawner interface{ agents() []Agent }
	// pluggable is implemented by kinds that name plugins.
	pluggable interface{ plugins() []Use }
	// executing is implemented by kinds that run something with inputs and variables.
	executing interface {
		// texts returns the command or prompt and the directory, and the inputs and variables by name.
		texts() (run []string, named map[string]string)
		// secrets returns the names of the secrets that it uses.
		secrets() []string
	}
	// described is implemented by kinds that refine the JSON Schema derived from their tags.
	described interface{ describe(s *schema.Schema) }
)

// kinds lists the kinds of steps: for each, a function that returns its defaults, and the step's default
// timeout.
var kinds = []struct {
	new     func() Kind
	timeout time.Duration
}{
	{newAgent, 15 * time.Minute},
	{newScript, 5 * time.Minute},
	{newLoop, 0},
	{newReview, 15 * time.Minute},
	{newAgentLoop, 0},
	{newMerge, 0},
}

// stepTypes lists the types of steps for messages.
func stepTypes() []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.new().Type())
	}
	return all
}

// position is the position of a step.
type position struct {
	node  yamldoc.Node
	step  string // name of the step
	depth int    // number of loops around the step
}

// stepHead contains the first keys of a step: its name, and the type that determines its kind.
type stepHead struct {
	Name string `yaml:"name"`
	Type string `yaml:"type" need:"true" about:"what the step does"`
}

// step reads a step with the keys of its kind. depth is the number of loops around it.
func (r *reader) step(n yamldoc.Node, depth int) Step {
	word := r.doc.Text(n, "type")
	for _, k := range kinds {
		kind := k.new()
		if kind.Type() != word.Value {
			continue
		}
		s := Step{Timeout: k.timeout, OnFail: Block, Kind: kind}
		r.doc.DecodeNode(n, &stepHead{}, &s, kind)
		r.common(n, &s, depth)
		kind.read(r, position{n, s.Name, depth})
		return s
	}
	if !word.Set() {
		r.doc.Fail(n, "a step has no type", "type: "+strings.Join(stepTypes(), ", "))
	} else {
		r.doc.OneOf(word, stepTypes()...)
	}
	return Step{Name: r.doc.Text(n, "name").Value}
}

// common checks the keys that all steps have.
func (r *reader) common(n yamldoc.Node, s *Step, depth int) {
	r.name(n, s.Name, "a step")
	if name := r.doc.Key(n, "name"); name.Set() {
		if r.names[s.Name] {
			r.doc.Fail(name, fmt.Sprintf("duplicate step name %q", s.Name), "names are unique in a grimoire, those in loops too")
		}
		r.names[s.Name] = true
	}
	r.amount(r.doc.Key(n, "budget"), s.Budget)
	r.retries(n, s)
	if s.ExitLoop && depth == 0 {
		r.doc.Fail(r.doc.Key(n, "on_success"), "there is no loop to exit here", "on_success works for the steps of a loop")
	}
	if output := r.doc.Key(n, "output"); output.Set() {
		r.wrote = append(r.wrote, template{textTemplate, s.Name, s.Output, output})
	}
	r.template(conditionTemplate, s.Name, s.When, r.doc.Key(n, "when"))
}

// retries determines the number of retries of a failed step.
func (r *reader) retries(n yamldoc.Node, s *Step) {
	given := r.doc.Key(n, "retries")
	switch {
	case given.Set() && (s.Retries < 1 || s.Retries > maxRetries):
		r.doc.Fail(given, fmt.Sprintf("retries must be 1 to %d", maxRetries), "")
	case !given.Set() && s.OnFail == retryOnFail:
		s.Retries = defaultRetries
	}
	if s.OnFail == retryOnFail {
		s.OnFail = Block
	}
	if backoff := r.doc.Key(n, "backoff"); backoff.Set() && s.Retries == 0 {
		r.doc.Fail(backoff, "backoff has no effect without retries", "retries: 2")
	}
}
