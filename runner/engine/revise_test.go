package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

// asksFor returns the result of a merge at which a person asks for changes.
func asksFor(text string) event.Result {
	o := arbiter.Opinion{Reviewer: "dana", Verdict: reviewer.Fail, Findings: []reviewer.Finding{{Severity: reviewer.Error, File: "a.go", Line: 3, Message: text}}}
	return event.Result{Error: "dana asked for changes", ErrorType: event.ErrorRevise, Opinions: []event.Opinion{{Opinion: o}}}
}

// revised answers the leaves of a run in which a person asks for changes n times.
func revised(n int) func(engine.Call) (event.Result, error) {
	return func(c engine.Call) (event.Result, error) {
		if c.Merge != nil && n > 0 {
			n--
			return asksFor(fmt.Sprintf("change %d", n)), nil
		}
		r, err := ok(c)
		if c.Agent != nil {
			r.Agent, r.Summary = "build", "did "+c.Path
		}
		return r, err
	}
}

// When a person asks for changes, the agent that did the work continues its conversation, and the steps
// after its work run again.
func TestRevise(t *testing.T) {
	const loop = "- {name: loop, type: loop, steps: [{name: test, type: script, command: x, on_success: exit_loop}, {name: fix, type: agent, prompt: fix-tests, input: {output: ''}}]}\n"
	const land = "- {name: land, type: merge}\n"
	agent := func(name string) string { return "- {name: " + name + ", type: agent, prompt: implement}\n" }
	script := func(name string) string { return "- {name: " + name + ", type: script, command: x}\n" }
	for _, test := range []struct {
		name, steps string
		times       int
		calls       string
		continues   string
	}{
		{"the agent is followed by the merge", agent("a") + land, 1, "a#1 land#1 revise@1/revise#1 revise@1/land#1", "a#1"},
		{"checks run again", agent("a") + loop + land, 1, "a#1 loop[1]/test#1 land#1 revise@1/revise#1 revise@1/loop[1]/test#1 revise@1/land#1", "a#1"},
		{
			"twice", agent("a") + loop + land, 2,
			"a#1 loop[1]/test#1 land#1 revise@1/revise#1 revise@1/loop[1]/test#1 revise@1/land#1 revise@2/revise#1 revise@2/loop[1]/test#1 revise@2/land#1", "a#1 revise@1/revise#1",
		},
		{"the agent that implemented it, not the one that describes it", agent("plan") + agent("a") + loop + agent("describe") + land, 1, "plan#1 a#1 loop[1]/test#1 describe#1 land#1 revise@1/revise#1 revise@1/loop[1]/test#1 revise@1/describe#1 revise@1/land#1", "a#1"},
		{"scripts after the work run again", script("s") + agent("a") + script("gen") + land, 1, "s#1 a#1 gen#1 land#1 revise@1/revise#1 revise@1/gen#1 revise@1/land#1", "a#1"},
		{"an agent in a loop did the work", "- {name: loop, type: loop, steps: [{name: a, type: agent, prompt: implement}, {name: test, type: script, command: x, on_success: exit_loop}]}\n" + script("s") + land, 1, "loop[1]/a#1 loop[1]/test#1 s#1 land#1 revise@1/revise#1 revise@1/s#1 revise@1/land#1", "loop[1]/a#1"},
		{"no agent did the work", script("s") + land, 1, "s#1 land#1 revise@1/revise#1 revise@1/s#1 revise@1/land#1", ""},
		{"steps after the merge run once", agent("a") + land + script("tell"), 1, "a#1 land#1 revise@1/revise#1 revise@1/land#1 revise@1/tell#1", "a#1"},
		{"the merge is retried and tolerated", agent("a") + "- {name: land, type: merge, retries: 2, on_fail: continue}\n", 1, "a#1 land#1 revise@1/revise#1 revise@1/land#1", "a#1"},
		{"what landed does not run again", agent("a") + land + script("s") + "- {name: more, type: merge}\n", 0, "a#1 land#1 s#1 more#1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &leaves{answer: revised(test.times)}
			out, err := runPlan(t, plan(t, "steps:\n"+test.steps), l)
			if err != nil || out.Verdict != engine.Passed {
				t.Fatalf("%+v, %v", out, err)
			}
			var continues []string
			for _, c := range l.inputs {
				if c.Agent != nil && c.Agent.Continues != "" {
					continues = append(continues, c.Agent.Continues)
				}
			}
			if got := strings.Join(l.calls, " "); got != test.calls || strings.Join(continues, " ") != test.continues {
				t.Errorf("calls %q\n want %q\ncontinues %q", got, test.calls, continues)
			}
		})
	}
}

// After a second merge asks for changes, the steps before the first merge do not run again.
func TestReviseAfterALanding(t *testing.T) {
	asked := false
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		if c.Step == "more" && !asked {
			asked = true
			return asksFor("more"), nil
		}
		return revised(0)(c)
	}}
	if out, err := runPlan(t, plan(t, "steps:\n- {name: a, type: agent, prompt: implement}\n- {name: land, type: merge}\n- {name: s, type: script, command: x}\n- {name: more, type: merge}"), l); err != nil || out.Verdict != engine.Passed {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := strings.Join(l.calls, " "); got != "a#1 land#1 s#1 more#1 revise@1/revise#1 revise@1/s#1 revise@1/more#1" {
		t.Error(got)
	}
}

// The agent's prompt contains the requested changes, its summary describes the change that lands, and its
// failure blocks the task.
func TestRevisePrompt(t *testing.T) {
	p := plan(t, "steps:\n- {name: a, type: agent, prompt: implement, expect: changes, env: {K: v}}\n- {name: land, type: merge}")
	l := &leaves{answer: revised(1)}
	if out, err := runPlan(t, p, l); err != nil || out.Verdict != engine.Passed {
		t.Fatalf("%+v, %v", out, err)
	}
	revise, land := l.inputs[2].Agent, l.inputs[3].Merge
	for _, want := range []string{"A title", "a.go:3", "change 0", "dana"} {
		if !strings.Contains(revise.Prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, revise.Prompt)
		}
	}
	if revise.ExpectChanges || strings.Join(revise.Env, " ") != "K=v" || land.Summary != "did revise@1/revise#1" {
		t.Errorf("%+v\n%+v", revise, land)
	}
	answer := revised(1)
	l = &leaves{answer: func(c engine.Call) (event.Result, error) {
		if c.Step == event.ReviseStep {
			return event.Result{Error: "no"}, nil
		}
		return answer(c)
	}}
	out, err := runPlan(t, p, l)
	if err != nil || out.Verdict != engine.Stopped || out.Status != event.StatusBlocked || out.Path != "revise@1/revise#1" {
		t.Errorf("%+v, %v", out, err)
	}
}

// If the agent gives no summary, the summary of the change does not change.
func TestReviseWithoutSummary(t *testing.T) {
	answer := revised(1)
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		r, err := answer(c)
		if c.Step == event.ReviseStep {
			r.Summary = ""
		}
		return r, err
	}}
	p := plan(t, "steps:\n- {name: a, type: agent, prompt: implement}\n- {name: land, type: merge}")
	if out, err := runPlan(t, p, l); err != nil || out.Verdict != engine.Passed || l.inputs[3].Merge.Summary != "did a#1" {
		t.Errorf("%+v, %v, lands with %q", out, err, l.inputs[3].Merge.Summary)
	}
}
