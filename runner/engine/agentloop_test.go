package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/engine"
)

func found(errors, warnings int) event.Result {
	o := event.Opinion{Opinion: arbiter.Opinion{Reviewer: "r", Verdict: reviewer.Fail}, Tree: "t"}
	for range errors {
		o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: len(o.Findings) + 1, Message: "wrong"})
	}
	for range warnings {
		o.Findings = append(o.Findings, reviewer.Finding{Severity: reviewer.Warning, Message: "odd"})
	}
	r := event.Result{Opinions: []event.Opinion{o}, Patch: "p", Error: "the review found something", ErrorType: event.ErrorFindings}
	r.Output = findings.Text(findings.Opinions(r.Opinions))
	return r
}

// judged answers the leaves of an agent-loop: consecutive reviews find these numbers of errors, then none.
// The arbiter wants another round while more returns true.
func judged(more func(round int) bool, errors ...int) func(engine.Call) (event.Result, error) {
	round := 0
	return func(c engine.Call) (event.Result, error) {
		switch {
		case c.Review != nil:
			if round++; round > len(errors) || errors[round-1] == 0 {
				return event.Result{OK: true, Opinions: []event.Opinion{{Opinion: arbiter.Opinion{Reviewer: "r", Verdict: reviewer.Pass}}}}, nil
			}
			return found(errors[round-1], 0), nil
		case c.Arbiter != nil:
			return event.Result{OK: true, Decided: true, Continue: more(c.Arbiter.Question.Round), Output: "because " + c.Path}, nil
		case c.Agent != nil:
			return event.Result{OK: true, Agent: "build", Output: "said in " + c.Path}, nil
		}
		return ok(c)
	}
}

func always(int) bool { return true }
func never(int) bool  { return false }

func TestAgentLoop(t *testing.T) {
	const head = "steps:\n- {name: a, type: script, command: x}\n- {name: q, type: agent-loop, reviewers: [agent]"
	const tail = "}\n- {name: z, type: script, command: \"echo {{.steps.q.output}}\"}"
	round := func(n string) string { return "q[" + n + "]/review#1 q[" + n + "]/arbiter#1 q[" + n + "]/fix#1 " }
	broken := func(path string, r event.Result) func(engine.Call) (event.Result, error) {
		rest := judged(always, 1)
		return func(c engine.Call) (event.Result, error) {
			if c.Path == path {
				return r, nil
			}
			return rest(c)
		}
	}
	for _, test := range []struct {
		name, keys string
		answer     func(engine.Call) (event.Result, error)
		calls      string
		status     event.Status
		exits      string
	}{
		{"content at once", "", judged(never), "a#1 q[1]/review#1 z#1", "", "content passed"},
		{"fixed once", "", judged(always, 2), "a#1 " + round("1") + "q[2]/review#1 z#1", "", "content passed"},
		{"fixed twice", "", judged(always, 2, 1), "a#1 " + round("1") + round("2") + "q[3]/review#1 z#1", "", "content passed"},
		{"not actionable", "", judged(never, 2), "a#1 q[1]/review#1 q[1]/arbiter#1 z#1", "", "not_actionable passed"},
		{"not actionable any more", "", judged(func(n int) bool { return n < 2 }, 2, 2), "a#1 " + round("1") + "q[2]/review#1 q[2]/arbiter#1 z#1", "", "not_actionable passed"},
		{"at its most", ", max_iterations: 2", judged(always, 1, 1, 1), "a#1 " + round("1") + "q[2]/review#1 q[2]/arbiter#1", event.StatusBlocked, "max_iterations failed"},
		{"a single round", ", max_iterations: 1", judged(always, 1), "a#1 q[1]/review#1 q[1]/arbiter#1", event.StatusBlocked, "max_iterations failed"},
		{"at its most, fails", ", max_iterations: 1, on_max_iterations: exit", judged(always, 1), "a#1 q[1]/review#1 q[1]/arbiter#1", event.StatusFailed, "max_iterations failed"},
		{"at its limit, continues", ", max_iterations: 1, on_max_iterations: continue", judged(always, 1), "a#1 q[1]/review#1 q[1]/arbiter#1 z#1", "", "max_iterations passed"},
		{"patience of one", ", max_iterations: 9, patience: 1", judged(always, 2, 2, 2), "a#1 " + round("1") + "q[2]/review#1 q[2]/arbiter#1", event.StatusBlocked, "max_iterations failed"},
		{"patience is as long as it gets better", ", max_iterations: 9, patience: 1", judged(always, 3, 2, 1, 1), "a#1 " + round("1") + round("2") + round("3") + "q[4]/review#1 q[4]/arbiter#1", event.StatusBlocked, "max_iterations failed"},
		{"patience counts from the best round", ", max_iterations: 9, patience: 2", judged(always, 2, 1, 2, 1, 0), "a#1 " + round("1") + round("2") + round("3") + "q[4]/review#1 q[4]/arbiter#1", event.StatusBlocked, "max_iterations failed"},
		{"better again in time", ", max_iterations: 9, patience: 2", judged(always, 3, 3, 2, 2, 1, 0), "a#1 " + round("1") + round("2") + round("3") + round("4") + round("5") + "q[6]/review#1 z#1", "", "content passed"},
		{"a review that cannot judge blocks", "", broken("q[1]/review#1", event.Result{Error: "gone", ErrorType: "plugin"}), "a#1 q[1]/review#1", event.StatusBlocked, "failed"},
		{"it may go on", ", on_fail: continue", broken("q[1]/review#1", event.Result{Error: "gone", ErrorType: "plugin"}), "a#1 q[1]/review#1 z#1", "", "failed"},
		{"it is tried again as a whole", ", retries: 1", broken("q[1]/review#1", event.Result{Error: "gone", ErrorType: "plugin"}), "a#1 q[1]/review#1 q#2[1]/review#1 q#2[1]/arbiter#1 q#2[1]/fix#1 q#2[2]/review#1 z#1", "", "content passed"},
		{"an arbiter that cannot decide blocks", "", broken("q[1]/arbiter#1", event.Result{Error: "gone", ErrorType: "plugin"}), "a#1 q[1]/review#1 q[1]/arbiter#1", event.StatusBlocked, "failed"},
		{"an agent that cannot fix it blocks", "", broken("q[1]/fix#1", event.Result{Error: "no"}), "a#1 " + strings.TrimSpace(round("1")), event.StatusBlocked, "failed"},
		{
			"steps of each round", ", steps: [{name: c, type: script, command: y, on_fail: continue}, {name: d, type: script, command: y}]", judged(always, 1),
			"a#1 q[1]/c#1 q[1]/d#1 " + round("1") + "q[2]/c#1 q[2]/d#1 q[2]/review#1 z#1", "", "content passed",
		},
		{"a step of a round that blocks", ", steps: [{name: c, type: script, command: y}]", broken("q[2]/c#1", event.Result{Error: "no"}), "a#1 q[1]/c#1 " + round("1") + "q[2]/c#1", event.StatusBlocked, "failed"},
		{"left out", `, when: "{{.a.failed}}"`, judged(always, 1), "a#1 z#1", "", "skipped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, l := plan(t, head+test.keys+tail), &leaves{answer: test.answer}
			var exits []string
			exited := func(step string, reason engine.ExitReason, _ string) {
				if step == "q" {
					exits = append(exits, string(reason))
				}
			}
			out, err := engine.Build(p).Run(t.Context(), engine.NewState(l, p, engine.Options{Exited: exited}))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.calls, " "); got != strings.TrimSpace(test.calls) || out.Status != test.status || strings.Join(exits, " ") != test.exits {
				t.Errorf("calls %q\n want %q\nstatus %q, exits %q", got, strings.TrimSpace(test.calls), out.Status, exits)
			}
		})
	}
}

// The leaves of a round receive the earlier rounds, and later steps read the result.
func TestAgentLoopHandoff(t *testing.T) {
	p := plan(t, `steps:
- {name: a, type: agent, prompt: "Do\nit."}
- name: q
  type: agent-loop
  reviewers: [agent, {name: lint, plugin: command, with: {command: "true"}}]
  arbiter: {plugin: agent, with: {model: haiku}}
  max_iterations: 4
  steps: [{name: c, type: script, command: "echo {{.loop.iteration}} {{.q.max_iterations}} {{.loop_entry.output}} {{.previous.output}}"}]
- {name: z, type: script, command: "echo {{.steps.q.output}} {{.steps.q.success}} {{.previous.output}} {{.loop.iteration}}"}`)
	l := &leaves{answer: judged(func(n int) bool { return n < 3 }, 2, 1, 1)}
	if out, err := runPlan(t, p, l); err != nil || out.Verdict != engine.Passed {
		t.Fatalf("%+v, %v", out, err)
	}
	inputs := map[string]engine.Call{}
	for _, c := range l.inputs {
		inputs[c.Path] = c
	}
	first, second := found(2, 0), found(1, 0)
	for n, want := range map[string][]arbiter.Opinion{"1": nil, "2": findings.Opinions(first.Opinions), "3": findings.Opinions(second.Opinions)} {
		r := inputs["q["+n+"]/review#1"].Review
		if text(t, r.Previous) != text(t, want) || n != string(rune('0'+r.Round)) || r.Model != "sonnet" {
			t.Errorf("review %s is given %+v", n, r)
		}
	}
	if r := inputs["q[1]/review#1"]; len(r.Review.Reviewers) != 2 || !strings.Contains(r.Review.Reviewers[0].Options["prompt"], "A title") ||
		r.Review.Reviewers[1].Options["command"] != "true" || !r.Tolerated || r.Step != "q/review" {
		t.Errorf("the first review is %+v", r)
	}
	q := inputs["q[3]/arbiter#1"].Arbiter.Question
	if q.Round != 3 || q.MaxRounds != 4 || q.Output != "said in q[2]/fix#1" || text(t, q.Opinions) != text(t, findings.Opinions(second.Opinions)) || q.Options["model"] != "haiku" {
		t.Errorf("the arbiter is asked %+v", q)
	}
	if text(t, q.History) != text(t, []arbiter.Round{
		{N: 1, Output: "said in a#1", Opinions: findings.Opinions(first.Opinions), Reason: "because q[1]/arbiter#1"},
		{N: 2, Output: "said in q[1]/fix#1", Opinions: findings.Opinions(second.Opinions), Reason: "because q[2]/arbiter#1"},
	}) {
		t.Errorf("its history is %+v", q.History)
	}
	if fix := inputs["q[1]/fix#1"].Agent.Prompt; !strings.Contains(fix, "error: a.go:1: wrong (r)\n    error: a.go:2: wrong (r)") || !strings.Contains(fix, "because q[1]/arbiter#1") {
		t.Errorf("the prompt of the fix is %q", fix)
	}
	for path, want := range map[string]string{
		"q[1]/c#1": "echo 1 4 said in a#1 said in a#1",
		"q[2]/c#1": "echo 2 4 said in a#1 q[1]/c#1",
		"z#1":      "echo error: a.go:1: wrong (r) true error: a.go:1: wrong (r) 0",
	} {
		if got := strings.ReplaceAll(inputs[path].Script.Command, "'", ""); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// The leaves of a round have their own paths, and inner steps cannot use their names.
func TestAgentLoopNames(t *testing.T) {
	for _, name := range []string{"review", "arbiter", "fix"} {
		inner := "{name: " + name + ", type: script, command: x}"
		_, err := grimoires.Parse("g.yaml", []byte("name: g\nsteps:\n- {name: q, type: agent-loop, reviewers: [agent], steps: ["+inner+"]}"))
		if want := `g.yaml:3:59: each round of "q" already has a part named "` + name + `" (give the step another name)`; err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
		p := plan(t, "steps:\n- {name: q, type: agent-loop, reviewers: [agent], steps: [{name: l, type: loop, max_iterations: 1, on_max_iterations: continue, steps: ["+inner+"]}]}")
		l := &leaves{answer: judged(always, 1)}
		out, err := runPlan(t, p, l)
		if want := strings.ReplaceAll("q[1]/l[1]/NAME#1 q[1]/review#1 q[1]/arbiter#1 q[1]/fix#1 q[2]/l[1]/NAME#1 q[2]/review#1", "NAME", name); err != nil ||
			out.Verdict != engine.Passed || strings.Join(l.calls, " ") != want {
			t.Errorf("%s: %+v, %v, %q", name, out, err, l.calls)
		}
	}
}

// Fewer warnings are progress. More errors are not, regardless of the warnings.
func TestPatienceWeighs(t *testing.T) {
	rounds := [][2]int{{1, 3}, {1, 2}, {2, 0}, {1, 2}, {0, 9}}
	n := 0
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		if c.Review != nil {
			n++
			return found(rounds[n-1][0], rounds[n-1][1]), nil
		}
		return judged(always)(c)
	}}
	out, err := runPlan(t, plan(t, "steps:\n- {name: q, type: agent-loop, reviewers: [agent], max_iterations: 9, patience: 2}"), l)
	if err != nil || out.Status != event.StatusBlocked || !slices.Contains(l.calls, "q[4]/arbiter#1") || slices.Contains(l.calls, "q[4]/fix#1") {
		t.Errorf("%+v, %v, %q", out, err, l.calls)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
