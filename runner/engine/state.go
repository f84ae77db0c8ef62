package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// State is everything that the steps of a run can read: the task and the results of earlier steps. It
// contains only recorded results.
type State struct {
	options Options
	leaves  Leaves
	task    map[string]any
	prior   string // summary of the previous session
	secrets map[string]any

	at       place
	attempt  int          // of the current step: 1, 2, ...
	tolerant bool         // the run continues if the current leaf fails
	budgets  []StepBudget // of the current step, outermost first
	loops    []loopState
	steps    map[string]any
	results  map[string]event.Result // of the steps that ran when they were last reached
	outputs  map[string]any
	previous map[string]any
	entry    any

	files       []string
	commits     []string
	receipts    []event.Receipt   // of scripts and checks
	tree        string            // the worktree after the last leaf
	summary     string            // summary of the first agent, which describes the change
	lastMessage string            // final message of the last agent
	agent       agentLeaf         // the last agent that worked on the task
	reviewed    map[string]string // the tree that the reviewers of each step saw last, empty if that review was incomplete
}

// agentLeaf is a called agent leaf.
type agentLeaf struct {
	path  string // empty if there is none
	input AgentInput
}

// enter starts a loop. The caller must call next before each iteration, and leave after the last one.
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

// round returns the path of the current iteration of the innermost loop.
func (s *State) round() string { return strings.Join(s.at, "/") + "/" }

type loopState struct {
	name           string
	iteration, max int
}

// Options configure a run of a tree. The zero value is valid: there are no time limits, and exits are not
// reported.
type Options struct {
	Clock Clock
	// Exited is called when the tree leaves a step. It may be nil.
	Exited func(step string, reason ExitReason, path string)
}

// NewState returns the state at the start of a run of plan. Steps that have not run yet have the values of
// skipped steps.
func NewState(leaves Leaves, plan *grimoires.Plan, options Options) *State {
	s := &State{
		options: options, leaves: leaves, task: grimoires.TaskData(plan.Task), prior: plan.Attempt,
		steps: map[string]any{}, results: map[string]event.Result{}, outputs: map[string]any{}, attempt: 1,
		secrets: map[string]any{}, reviewed: map[string]string{},
	}
	s.previous = s.emptyView()
	s.entry = s.previous
	for _, name := range plan.Grimoire.Secrets() {
		s.secrets[name] = tmpl.Secret{Name: name}
	}
	for step := range plan.Grimoire.All() {
		s.skipped(step.Name, step.Output)
	}
	return s
}

// Summary returns the summary of the first agent, which describes the change.
func (s *State) Summary() string { return s.summary }

// name returns the name of a step as a part of the paths of its inner steps. Only later attempts have a
// number.
func (s *State) name(step string) string {
	if s.attempt == 1 {
		return step
	}
	return fmt.Sprintf("%s#%d", step, s.attempt)
}

// Data returns the data for templates. input is the input of the step.
func (s *State) Data(input map[string]any) map[string]any {
	data := maps.Clone(s.steps)
	maps.Copy(data, s.outputs) // an output with the name of its step also prints as text
	loop := map[string]any{"iteration": 0, "max_iterations": 0}
	for _, l := range s.loops { // also by name; the innermost loop is the last
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

// setResult stores the result of a step under its name for later steps.
func (s *State) setResult(name, output string, r event.Result) {
	value := s.view(r, false)
	s.steps[name], s.results[name] = value, r
	s.previous = value
	if output != "" {
		s.outputs[output] = tmpl.Output{Text: r.Output, Parts: value}
	}
}

// add adds the result of a leaf.
func (s *State) add(r event.Result) {
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
	s.summary = cmp.Or(s.summary, r.Summary)
	if r.Agent != "" {
		s.lastMessage = r.Output
	}
}

// addReview records the tree that the reviewers of a step saw.
func (s *State) addReview(step string, r event.Result) {
	s.reviewed[step] = ""
	if r.ErrorType == "" || r.ErrorType == event.ErrorFindings {
		s.reviewed[step] = r.Tree
	}
}

// reviewedTrees returns the tree that the reviewers of each step saw last.
func (s *State) reviewedTrees() []string {
	var trees []string
	for _, step := range slices.Sorted(maps.Keys(s.reviewed)) {
		trees = append(trees, s.reviewed[step])
	}
	return trees
}

// currentReceipts returns the receipts for the current tree.
func (s *State) currentReceipts() []event.Receipt {
	var now []event.Receipt
	for _, r := range s.receipts {
		if r.Tree == s.tree {
			now = append(now, r)
		}
	}
	return now
}

// skipped stores the values of a skipped step. It does not change previous, the result of the last step
// that ran.
func (s *State) skipped(name, output string) {
	value := s.view(event.Result{}, true)
	s.steps[name] = value
	delete(s.results, name)
	if _, ok := s.outputs[output]; output != "" && !ok {
		s.outputs[output] = tmpl.Output{Parts: value}
	}
}

// ran reports whether a step ran, and was not skipped, when it was last reached.
func (s *State) ran(name string) bool {
	value, _ := s.steps[name].(map[string]any)
	return value["skipped"] == false
}

// view converts a result to the form for templates.
func (s *State) view(r event.Result, skipped bool) map[string]any {
	outputs := r.Outputs
	if outputs == nil {
		outputs = map[string]any{}
	}
	return map[string]any{
		"output": r.Output, "outputs": outputs, "summary": r.Summary, "error": r.Error,
		"exit_code": r.ExitCode, "commit": r.Commit, "files": r.Files,
		"success": r.OK, "failed": !r.OK && !skipped, "skipped": skipped, "status": statusOf(r, skipped),
	}
}

// statusOf returns the status of a step for templates.
func statusOf(r event.Result, skipped bool) string {
	switch {
	case skipped:
		return "skipped"
	case r.OK:
		return "success"
	}
	return "failed"
}

// emptyView returns the value of previous before the first step.
func (s *State) emptyView() map[string]any {
	v := s.view(event.Result{}, true)
	v["skipped"], v["status"] = false, ""
	return v
}

// snapshot returns the value of loop_entry for a loop that starts now: the result of the previous step,
// which also contains the results of earlier steps by name.
func (s *State) snapshot() any {
	parts := maps.Clone(s.steps)
	maps.Copy(parts, s.previous)
	return tmpl.Output{Text: tmpl.JSON(s.previous), Parts: parts}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// ExitReason is the reason why the tree left a step.
type ExitReason string

// The exit reasons.
const (
	ExitPassed        ExitReason = "passed"
	ExitFailed        ExitReason = "failed"
	ExitSkipped       ExitReason = "skipped"        // its condition was false
	ExitByStep        ExitReason = "exited"         // a step exited the loop
	ExitExhausted     ExitReason = "max_iterations" // a loop or an agent-loop reached its limit
	ExitContent       ExitReason = "content"        // the reviewers passed the change
	ExitNotActionable ExitReason = "not_actionable" // the arbiter ended the agent-loop
)

func (s *State) exit(step string, reason ExitReason) {
	if s.options.Exited != nil {
		s.options.Exited(step, reason, s.at.leaf(step, s.attempt))
	}
}
