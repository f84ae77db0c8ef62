package grimoires

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/yamldoc"
)

// The defaults of a grimoire. Only the run limits a loop and a merge.
const (
	defaultRun        = 2 * time.Hour
	defaultAgent      = 15 * time.Minute
	defaultScript     = 5 * time.Minute
	defaultReview     = 15 * time.Minute
	defaultIterations = 3
	defaultRetries    = 1
	defaultReserve    = 0.1
	defaultStrategy   = "squash"

	maxIterations = 100
	maxRetries    = 10
	maxDepth      = 8 // of loops in loops
)

// The types of steps.
const (
	agentType     = "agent"
	scriptType    = "script"
	loopType      = "loop"
	reviewType    = "review"
	agentLoopType = "agent-loop"
	mergeType     = "merge"
)

// stepTypes lists the types of steps, for messages.
func stepTypes() []string {
	return []string{agentType, scriptType, loopType, reviewType, agentLoopType, mergeType}
}

var (
	nameRE   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	pluginRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	envRE    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

type text = yamldoc.At[string]

// grimoireKeys is the format of a grimoire.
type grimoireKeys struct {
	Name        text                       `yaml:"name" need:"true" about:"same as the file"`
	Description text                       `yaml:"description" about:"one line for people"`
	Timeout     yamldoc.At[time.Duration]  `yaml:"timeout" about:"of the whole run; 2h"`
	Budget      yamldoc.At[runBudgetKeys]  `yaml:"budget" about:"of the whole run"`
	Steps       yamldoc.At[[]yamldoc.Node] `yaml:"steps" need:"true" about:"the steps, in order"`
}

// stepKeys are the keys of every step.
type stepKeys struct {
	Name      text                      `yaml:"name" need:"true" about:"unique in the grimoire: letters, digits, - and _"`
	Type      text                      `yaml:"type" need:"true" about:"agent, script, loop, review, agent-loop or merge"`
	When      text                      `yaml:"when" about:"template that evaluates to true or false; false skips the step"`
	Timeout   yamldoc.At[time.Duration] `yaml:"timeout" about:"agent and review 15m, script 5m; others: that of the run"`
	OnFail    text                      `yaml:"on_fail" oneof:"block|continue|fail|retry" about:"block: a person decides; continue: run the next step; fail: the task fails; retry: run the step again, then block"`
	Retries   yamldoc.At[int]           `yaml:"retries" about:"1 to 10: how many more times a failed step runs before on_fail applies"`
	Backoff   yamldoc.At[time.Duration] `yaml:"backoff" about:"before the first retry; doubled for each further one"`
	Budget    yamldoc.At[budget.Keys]   `yaml:"budget" about:"of the step, including retries and inner steps"`
	OnSuccess text                      `yaml:"on_success" oneof:"exit_loop" about:"leave the innermost loop"`
	Output    text                      `yaml:"output" about:"another name for the result of the step: {{.NAME}}"`
}

// reader reads a grimoire from a document and collects what it finds.
type reader struct {
	doc   *yamldoc.Document
	names map[string]bool
	found []template // in the order of the steps
	wrote []template // names that steps write with output
	uses  []Use      // in the order of the file, those of a step in the order of its keys
	scope *scope
}

// template is a template of a step, with its place.
type template struct {
	kind templateKind
	step string
	at   text
}

type templateKind int

const (
	textTemplate templateKind = iota
	variableTemplate
	conditionTemplate
	commandTemplate
	promptTemplate // inline, or the name of a prompt
)

// Parse reads a grimoire and finds all errors in it, except those that depend on
// prompts (see Library.Load). file is the name in errors, and the grimoire's Source.
// The error is a yamldoc.Errors.
func Parse(file string, data []byte) (*Grimoire, error) {
	r, g, err := read(file, data)
	if err != nil {
		return nil, err
	}
	if err := r.doc.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

func read(file string, data []byte) (*reader, *Grimoire, error) {
	doc, err := yamldoc.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	doc.Explain(legacyKeys())
	r := &reader{doc: doc}
	g := r.grimoire(doc.Root())
	g.Source = file
	return r, g, nil
}

func (r *reader) grimoire(root yamldoc.Node) *Grimoire {
	r.names = map[string]bool{}
	var keys grimoireKeys
	r.doc.DecodeNode(root, &keys)
	g := &Grimoire{
		Name: keys.Name.Value, Description: strings.TrimSpace(keys.Description.Value), Timeout: keys.Timeout.Or(defaultRun),
	}
	r.name(root, keys.Name, "the grimoire")
	g.Budget, g.Reserve = r.amount(keys.Budget, keys.Budget.Set(), keys.Budget.Value.Amount), r.reserve(keys.Budget.Value.Reserve)
	g.Steps = r.steps(root, keys.Steps, 0)
	r.scope = newScope(g)
	r.outputs()
	for _, t := range r.found {
		r.check(t)
	}
	return g
}

func (r *reader) name(at yamldoc.Place, name text, what string) {
	switch {
	case !name.Set():
		r.doc.Fail(at, what+" has no name", "")
	case !nameRE.MatchString(name.Value):
		r.doc.Fail(name, fmt.Sprintf("%q cannot be a name", name.Value), "letters, digits, - and _, at most 64, the first a letter or digit")
	}
}

func (r *reader) steps(at yamldoc.Place, nodes yamldoc.At[[]yamldoc.Node], depth int) []Step {
	if len(nodes.Value) == 0 {
		r.doc.Fail(at, "there are no steps", "list at least one under steps")
	}
	steps := make([]Step, len(nodes.Value))
	for i, n := range nodes.Value {
		steps[i] = r.step(n, depth)
	}
	return steps
}

// step reads the keys of the step's type. depth is the number of loops around it.
func (r *reader) step(n yamldoc.Node, depth int) Step {
	kind := r.doc.Text(n, "type")
	switch kind.Value {
	case agentType:
		return r.agent(n, depth)
	case scriptType:
		return r.script(n, depth)
	case loopType:
		return r.loop(n, depth)
	case reviewType:
		return r.review(n, depth)
	case agentLoopType:
		return r.agentLoop(n, depth)
	case mergeType:
		return r.merge(n, depth)
	}
	if !kind.Set() {
		r.doc.Fail(n, "a step has no type", "type: "+strings.Join(stepTypes(), ", "))
	} else {
		r.doc.OneOf(kind, stepTypes()...)
	}
	return Step{Name: r.doc.Text(n, "name").Value}
}

// common reads the keys that every step has. limit is the type's default timeout.
func (r *reader) common(n yamldoc.Node, k stepKeys, depth int, limit time.Duration) Step {
	r.name(n, k.Name, "a step")
	if k.Name.Set() && r.names[k.Name.Value] {
		r.doc.Fail(k.Name, fmt.Sprintf("duplicate step name %q", k.Name.Value), "names are unique in a grimoire, those in loops too")
	}
	r.names[k.Name.Value] = true
	s := Step{
		Name: k.Name.Value, When: k.When.Value, Timeout: k.Timeout.Or(limit),
		OnFail: OnFail(k.OnFail.Or(string(Block))), Output: k.Output.Value, Budget: r.amount(k.Budget, k.Budget.Set(), k.Budget.Value),
	}
	s.Retries, s.Backoff = r.retries(k), k.Backoff.Value
	if s.OnFail == Retry {
		s.OnFail = Block
	}
	if k.OnSuccess.Value == exitLoop {
		s.ExitLoop = true
		if depth == 0 {
			r.doc.Fail(k.OnSuccess, "there is no loop to exit here", "on_success works for the steps of a loop")
		}
	}
	if k.Output.Set() {
		r.wrote = append(r.wrote, template{textTemplate, s.Name, k.Output})
	}
	if k.When.Set() {
		r.found = append(r.found, template{conditionTemplate, s.Name, k.When})
	}
	return s
}

const exitLoop = "exit_loop"

// retries reads how many more times a failed step runs.
func (r *reader) retries(k stepKeys) int {
	n := k.Retries.Value
	switch {
	case k.Retries.Set() && (n < 1 || n > maxRetries):
		r.doc.Fail(k.Retries, fmt.Sprintf("retries must be 1 to %d", maxRetries), "")
	case !k.Retries.Set() && k.OnFail.Value == string(Retry):
		n = defaultRetries
	}
	if k.Backoff.Set() && n == 0 {
		r.doc.Fail(k.Backoff, "backoff has no effect without retries", "retries: 2")
	}
	return n
}
