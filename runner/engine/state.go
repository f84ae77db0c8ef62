package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/tmpl"
)

// State is what the steps of a run can read: the task and the results of earlier
// steps. It is made of recorded results only.
type State struct {
	options Options
	leaves  Leaves
	v       int // of the plan
	task    map[string]any
	prior   string // summary of the session before
	secrets map[string]any

	at       place
	attempt  int          // of the step at work: 1, 2, ...
	tolerant bool         // a failure of the current leaf stops nothing
	budgets  []StepBudget // that hold for the step at work, the outermost first
	loops    []loopState
	steps    map[string]any
	outputs  map[string]any
	previous map[string]any
	entry    any

	files    []string
	commits  []string
	receipts []event.Receipt   // of scripts and checks
	tree     string            // the worktree after the last leaf
	summary  string            // of the first agent: what the change is about
	said     string            // by the last agent that worked
	reviewed map[string]string // by step: the tree that its reviewers saw last; empty: they came to no end
}

// enter begins a loop: next is called before each iteration, leave after the last.
func (s *State) enter(name string, most int) (next func(n int), leave func()) {
	outer, entry, attempt, path := s.at, s.entry, s.attempt, s.name(name)
	s.entry, s.attempt = s.snapshot(), 1
	s.loops = append(s.loops, loopState{name: name, max: most})
	next = func(n int) {
		s.at = outer.iteration(path, n)
		s.loops[len(s.loops)-1].iteration = n
	}
	return next, func() {
		s.at, s.entry, s.attempt, s.loops = outer, entry, attempt, s.loops[:len(s.loops)-1]
	}
}

// round is the path of the iteration that the innermost loop is in.
func (s *State) round() string { return strings.Join(s.at, "/") + "/" }

type loopState struct {
	name           string
	iteration, max int
}

// Options configure a run of a tree. The zero value is valid: no time limits apply,
// and exits are not reported.
type Options struct {
	Clock Clock
	// Exited is called when the tree leaves a step, unless it is nil.
	Exited func(step string, reason ExitReason, path string)
}

// NewState returns the state at the start of a run of plan. Steps that have
// not run have defined values, those of a step that was skipped.
func NewState(leaves Leaves, plan *grimoires.Plan, options Options) *State {
	s := &State{
		options: options, leaves: leaves, v: plan.V, task: grimoires.TaskData(plan.Task), prior: plan.Attempt,
		steps: map[string]any{}, outputs: map[string]any{}, attempt: 1,
		secrets: map[string]any{}, reviewed: map[string]string{},
	}
	s.previous = s.nothing()
	s.entry = s.previous
	for _, name := range plan.Grimoire.Secrets() {
		s.secrets[name] = tmpl.Secret{Name: name}
	}
	for step := range plan.Grimoire.All() {
		s.skipped(step.Name, step.Output)
	}
	return s
}

// Summary returns the summary of the first agent: what the change is about.
func (s *State) Summary() string { return s.summary }

// name is what paths call a step with steps inside: the first attempt has no
// number.
func (s *State) name(step string) string {
	if s.attempt == 1 {
		return step
	}
	return fmt.Sprintf("%s#%d", step, s.attempt)
}

// Data is what templates see; input is that of the step.
func (s *State) Data(input map[string]any) map[string]any {
	data := maps.Clone(s.steps)
	maps.Copy(data, s.outputs) // one that is called as its step is a text too
	loop := map[string]any{"iteration": 0, "max_iterations": 0}
	for _, l := range s.loops { // each by its name too; the innermost is the last
		loop = map[string]any{"iteration": l.iteration, "max_iterations": l.max}
		data[l.name] = loop
	}
	commit := ""
	if n := len(s.commits); n > 0 {
		commit = s.commits[n-1]
	}
	maps.Copy(data, map[string]any{
		"task": s.task, "bead": s.task, "steps": s.steps, "previous": s.previous,
		"loop": loop, "loop_entry": s.entry, "input": input, "attempt": s.prior, "secrets": s.secrets,
		"artifacts": map[string]any{
			"files": s.files, "commit": commit, "commits": s.commits, "task_ids": []string{str(s.task["id"])},
		},
	})
	return data
}

// named lets later steps know the result of a step by its name.
func (s *State) named(name, output string, r event.Result) {
	value := s.view(r, false)
	s.steps[name] = value
	s.previous = value
	if output != "" {
		s.outputs[output] = tmpl.Output{Text: r.Output, Parts: value}
	}
}

// done takes what a leaf made into the state.
func (s *State) done(r event.Result) {
	for _, f := range r.Files {
		if !slices.Contains(s.files, f) {
			s.files = append(s.files, f)
		}
	}
	if r.Commit != "" && !slices.Contains(s.commits, r.Commit) {
		s.commits = append(s.commits, r.Commit)
	}
	if r.Tree != "" {
		s.tree = r.Tree
	}
	s.receipts = append(s.receipts, r.Receipts...)
	if s.summary == "" {
		s.summary = r.Summary
	}
	if r.Agent != "" {
		s.said = r.Output
	}
}

// judged takes in what the reviewers of a step have seen.
func (s *State) judged(step string, r event.Result) {
	s.reviewed[step] = ""
	if r.ErrorType == "" || r.ErrorType == event.ErrorFindings {
		s.reviewed[step] = r.Tree
	}
}

// seen are the trees that reviewers have seen, one for each step that has some.
func (s *State) seen() []string {
	var trees []string
	for _, step := range slices.Sorted(maps.Keys(s.reviewed)) {
		trees = append(trees, s.reviewed[step])
	}
	return trees
}

// proofs are the receipts of what ran on the tree as it is now.
func (s *State) proofs() []event.Receipt {
	var now []event.Receipt
	for _, r := range s.receipts {
		if r.Tree == s.tree {
			now = append(now, r)
		}
	}
	return now
}

// skipped gives a step that did not run its defined values. previous stays:
// it is the step that ran just before.
func (s *State) skipped(name, output string) {
	value := s.view(event.Result{}, true)
	s.steps[name] = value
	if _, ok := s.outputs[output]; output != "" && !ok {
		s.outputs[output] = tmpl.Output{Parts: value}
	}
}

// ran reports whether a step ran when its turn came last.
func (s *State) ran(name string) bool {
	value, _ := s.steps[name].(map[string]any)
	return value["skipped"] == false
}

// view is a result as templates see it.
func (s *State) view(r event.Result, skipped bool) map[string]any {
	outputs := r.Outputs
	if outputs == nil {
		outputs = map[string]any{}
	}
	value := map[string]any{
		"output": r.Output, "outputs": outputs, "summary": r.Summary, "error": r.Error,
		"exit_code": r.ExitCode, "commit": r.Commit, "files": r.Files,
		"success": r.OK, "failed": !r.OK && !skipped, "skipped": skipped,
	}
	if s.v >= grimoires.PlanNamesOfOriginal {
		value["status"] = statusOf(r, skipped)
	}
	return value
}

// statusOf is the status of a step as templates see it.
func statusOf(r event.Result, skipped bool) string {
	switch {
	case skipped:
		return "skipped"
	case r.OK:
		return "success"
	}
	return "failed"
}

// nothing is what previous is before the first step.
func (s *State) nothing() map[string]any {
	v := s.view(event.Result{}, true)
	v["skipped"] = false
	if s.v >= grimoires.PlanNamesOfOriginal {
		v["status"] = ""
	}
	return v
}

// snapshot is what loop_entry is in a loop that begins now: the result of the step
// before it, which also has the steps so far by their names.
func (s *State) snapshot() any {
	if s.v < grimoires.PlanNamesOfOriginal {
		return s.previous
	}
	parts := maps.Clone(s.steps)
	maps.Copy(parts, s.previous)
	return tmpl.Output{Text: tmpl.JSON(s.previous), Parts: parts}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// ExitReason is why the tree left a step.
type ExitReason string

// The exit reasons.
const (
	ExitPassed        ExitReason = "passed"
	ExitFailed        ExitReason = "failed"
	ExitSkipped       ExitReason = "skipped"        // when was false
	ExitByStep        ExitReason = "exited"         // a loop, by a step in it
	ExitExhausted     ExitReason = "max_iterations" // a loop or an agent-loop
	ExitContent       ExitReason = "content"        // an agent-loop, by its reviewers
	ExitNotActionable ExitReason = "not_actionable" // an agent-loop, by its arbiter
)

func (s *State) exited(step string, reason ExitReason) {
	if s.options.Exited != nil {
		s.options.Exited(step, reason, s.at.leaf(step, s.attempt))
	}
}
