package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// A merge receives the trees that reviewers saw last, and the receipts for the current tree.
func TestMergeInput(t *testing.T) {
	trees := map[string]string{"a#1": "t1", "r#1": "t1", "s#1": "t2", "b#1": "t2", "q#1": "t2"}
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		tree := trees[c.Path]
		r := event.Result{OK: true, Tree: tree}
		switch {
		case c.Agent != nil:
			r.Summary = "summary of " + c.Path
		case c.Script != nil:
			r.Receipts = []event.Receipt{{Command: c.Script.Command, Tree: tree}}
		case c.Path == "q#1":
			r.OK, r.ErrorType = false, event.ErrorPlugin
		}
		return r, nil
	}}
	_, err := runPlan(t, plan(t, `steps:
- {name: a, type: agent, prompt: task}
- {name: early, type: script, command: make}
- {name: r, type: review, reviewers: [agent]}
- {name: s, type: script, command: make test}
- {name: b, type: agent, prompt: task}
- {name: q, type: review, reviewers: [agent], on_fail: continue}
- {name: land, type: merge}
`), l)
	if err != nil {
		t.Fatal(err)
	}
	got := l.inputs[len(l.inputs)-1].Merge
	if got == nil || !slices.Equal(got.Reviewed, []string{"", "t1"}) || got.Summary != "summary of a#1" || len(got.Receipts) != 1 || got.Receipts[0].Command != "make test" {
		t.Errorf("%+v", got)
	}
}

// An agent resolves at most two conflicts of a landing; the third blocks the run. An agent that fails twice
// also blocks it.
func TestMergeResolves(t *testing.T) {
	for name, tt := range map[string]struct {
		conflicts int
		fails     bool
		calls     string
		error     string
	}{
		"one":      {1, false, "land#1 land[1]/resolve#1 land[2]/land#1", ""},
		"two":      {2, false, "land#1 land[1]/resolve#1 land[2]/land#1 land[2]/resolve#1 land[3]/land#1", ""},
		"three":    {3, false, "land#1 land[1]/resolve#1 land[2]/land#1 land[2]/resolve#1 land[3]/land#1", "conflict 3"},
		"unsolved": {3, true, "land#1 land[1]/resolve#1 land[2]/land#1 land[2]/resolve#1", "conflict 2; an agent did not resolve it: too hard"},
	} {
		met := 0
		var tolerated []bool
		l := &leaves{answer: func(c engine.Call) (event.Result, error) {
			tolerated = append(tolerated, c.Tolerated)
			switch {
			case c.Agent != nil && tt.fails:
				return event.Result{Error: "too hard"}, nil
			case c.Merge != nil && met < tt.conflicts:
				met++
				return event.Result{Error: fmt.Sprintf("conflict %d", met), ErrorType: event.ErrorConflict, Files: []string{"a.go"}}, nil
			}
			return ok(c)
		}}
		out, err := runPlan(t, plan(t, "steps: [{name: land, type: merge, on_conflict: agent}]\n"), l)
		if err != nil || strings.Join(l.calls, " ") != tt.calls || out.Result.Error != tt.error || (out.Verdict == engine.Passed) != (tt.error == "") {
			t.Errorf("%s: %+v, %v, calls %q", name, out, err, l.calls)
		}
		if last := tolerated[len(tolerated)-1]; !tolerated[0] || last != (tt.conflicts == 1 || tt.fails) {
			t.Errorf("%s: tolerated %v", name, tolerated)
		}
		if name == "one" && (!l.inputs[1].Agent.Resolve || !strings.Contains(l.inputs[1].Agent.Prompt, "a.go")) {
			t.Errorf("the agent is given %+v", l.inputs[1].Agent)
		}
	}
}

// The reserve of a budget is for steps that review and land. Without such steps there is no reserve.
func TestBudgetsOfLeaves(t *testing.T) {
	const work = `budget: {turns: 10, reserve: 0.2}
steps:
- {name: a, type: agent, prompt: task}
- name: l
  type: loop
  max_iterations: 1
  on_max_iterations: continue
  steps: [{name: b, type: agent, prompt: task, budget: {turns: 3}}]
`
	const review = "- {name: r, type: review, reviewers: [agent]}\n"
	whole := engine.StepBudget{Max: budget.Amount{Turns: 10}, Reserve: 0.2}
	inner := engine.StepBudget{Scope: "l[1]/b", Name: "b", Max: budget.Amount{Turns: 3}}
	unreserved := whole
	unreserved.Reserve = 0
	for steps, want := range map[string]map[string][]engine.StepBudget{
		work:          {"a#1": {unreserved}, "l[1]/b#1": {unreserved, inner}},
		work + review: {"a#1": {whole}, "l[1]/b#1": {whole, inner}, "r#1": {unreserved}},
	} {
		l := &leaves{answer: ok}
		if _, err := runPlan(t, plan(t, steps), l); err != nil {
			t.Fatal(err)
		}
		for _, c := range l.inputs {
			if !slices.Equal(c.Budgets, want[c.Path]) {
				t.Errorf("%s: %+v, want %+v", c.Path, c.Budgets, want[c.Path])
			}
		}
	}
}

// The pause before an attempt doubles, up to a quarter of an hour. The run continues after each failed
// attempt except the last.
func TestRetryPauses(t *testing.T) {
	var pauses []time.Duration
	var tolerated []bool
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		if c.Pause != nil {
			pauses = append(pauses, c.Pause.For)
			return event.Result{OK: true}, nil
		}
		tolerated = append(tolerated, c.Tolerated)
		return event.Result{Error: "no"}, nil
	}}
	out, err := runPlan(t, plan(t, "steps: [{name: a, type: script, command: x, retries: 4, backoff: 3m}]\n"), l)
	if err != nil || out.Status != event.StatusBlocked || strings.Join(l.calls, " ") != "a#1 a/backoff#1 a#2 a/backoff#2 a#3 a/backoff#3 a#4 a/backoff#4 a#5" {
		t.Errorf("%+v, %v, calls %q", out, err, l.calls)
	}
	if want := []time.Duration{3 * time.Minute, 6 * time.Minute, 12 * time.Minute, 15 * time.Minute}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	if want := []bool{true, true, true, true, false}; !slices.Equal(tolerated, want) {
		t.Errorf("tolerated %v, want %v", tolerated, want)
	}
}

// The plan's model applies only to agents of the plan's provider.
func TestModelOfAgents(t *testing.T) {
	l := &leaves{answer: ok}
	p := plan(t, `steps:
- {name: a, type: agent, prompt: task}
- {name: b, type: agent, prompt: task, provider: claude}
- {name: c, type: agent, prompt: task, provider: codex}
- {name: d, type: agent, prompt: task, provider: codex, model: o}
`)
	p.Provider = "claude"
	if _, err := runPlan(t, p, l); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"sonnet", "sonnet", "", "o"} {
		if got := l.inputs[i].Agent.Model; got != want {
			t.Errorf("%s: model %q, want %q", l.calls[i], got, want)
		}
	}
}
