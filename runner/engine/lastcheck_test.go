package engine_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// checkLoop is a loop of at most two iterations that a check can exit.
const checkLoop = `steps:
- name: l
  type: loop
  max_iterations: 2
  on_max_iterations: BLOCK
  steps:
  - {name: build, type: script, command: make}
  - {name: work, type: agent, prompt: "do\nit"}
  - {name: test, type: script, command: make test, on_fail: continue, on_success: exit_loop}
  - {name: fix, type: agent, prompt: "fix\nit", when: "{{.test.failed}}"}
- {name: z, type: script, command: "echo {{.test.success}} {{.loop.iteration}}"}`

func TestLastCheck(t *testing.T) {
	rounds := "l[1]/build#1 l[1]/work#1 l[1]/test#1 l[1]/fix#1 l[2]/build#1 l[2]/work#1 l[2]/test#1 l[2]/fix#1"
	failing := func(paths string) func(engine.Call) (event.Result, error) {
		return func(c engine.Call) (event.Result, error) {
			for p := range strings.FieldsSeq(paths) {
				if c.Path == p {
					return event.Result{Error: "no"}, nil
				}
			}
			return ok(c)
		}
	}
	const always = "l[1]/test#1 l[2]/test#1 l[3]/test#1"
	for name, test := range map[string]struct {
		old, new string // replaced in the grimoire
		fails    string
		calls    string
		status   event.Status
		path     string
	}{
		"the last fix helped":              {fails: "l[1]/test#1 l[2]/test#1", calls: rounds + " l[3]/build#1 l[3]/test#1 z#1"},
		"the last fix did not help":        {fails: always, calls: rounds + " l[3]/build#1 l[3]/test#1", status: event.StatusBlocked, path: "l[2]/"},
		"it continues at its limit":        {old: "BLOCK", new: "continue", fails: always, calls: rounds + " l[3]/build#1 l[3]/test#1 z#1"},
		"it fails at its limit":            {old: "BLOCK", new: "fail", fails: always, calls: rounds + " l[3]/build#1 l[3]/test#1", status: event.StatusFailed, path: "l[2]/"},
		"what prepares the check can fail": {fails: always + " l[3]/build#1", calls: rounds + " l[3]/build#1", status: event.StatusBlocked, path: "l[3]/build#1"},
		"nothing was fixed": {
			old: "{{.test.failed}}", new: "{{eq .loop.iteration 1}}", fails: always,
			calls: strings.TrimSuffix(rounds, " l[2]/fix#1"), status: event.StatusBlocked, path: "l[2]/",
		},
		"nothing comes after the check": {
			old: `  - {name: fix, type: agent, prompt: "fix\nit", when: "{{.test.failed}}"}` + "\n", fails: always,
			calls: "l[1]/build#1 l[1]/work#1 l[1]/test#1 l[2]/build#1 l[2]/work#1 l[2]/test#1", status: event.StatusBlocked, path: "l[2]/",
		},
		"an agent can exit the loop": {
			old: `{name: work, type: agent, prompt: "do\nit"}`, new: `{name: work, type: agent, prompt: "do\nit", on_success: exit_loop, on_fail: continue}`,
			fails: always + " l[1]/work#1 l[2]/work#1", calls: rounds + " l[3]/build#1 l[3]/work#1 z#1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			yaml := strings.Replace(checkLoop, test.old, test.new, 1)
			p, l := plan(t, strings.Replace(yaml, "BLOCK", "block", 1)), &leaves{answer: failing(test.fails)}
			out, err := runPlan(t, p, l)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.calls, " "); got != test.calls || out.Status != test.status || test.path != "" && out.Path != test.path {
				t.Errorf("calls %q\n want %q\nstatus %q at %s", got, test.calls, out.Status, out.Path)
			}
		})
	}
}

// Resuming a loop that is blocked at its limit repeats its last iteration, and the check after it.
func TestLastCheckAgain(t *testing.T) {
	p, j, fails := plan(t, strings.Replace(checkLoop, "BLOCK", "block", 1)), &paper{}, true
	run := func() (engine.Outcome, string) {
		l := &leaves{answer: func(c engine.Call) (event.Result, error) {
			if c.Step == "test" && (fails || c.Path == "l[2]/test#1") {
				return event.Result{Error: "no"}, nil
			}
			return ok(c)
		}}
		out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{j}), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out, strings.Join(l.calls, " ")
	}
	first, _ := run()
	if err := j.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: first.Path}); err != nil {
		t.Fatal(err)
	}
	fails = false
	const again = "l[2]/build#1 l[2]/work#1 l[2]/test#1 l[2]/fix#1 l[3]/build#1 l[3]/test#1 z#1"
	if out, calls := run(); out.Verdict != engine.Passed || calls != again {
		t.Errorf("%+v, calls %q", out, calls)
	}
}
