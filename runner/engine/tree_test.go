package engine_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// leaves answers calls with a function and records them.
type leaves struct {
	answer func(c engine.Call) (event.Result, error)
	calls  []string
	inputs []engine.Call
}

func (l *leaves) Do(ctx context.Context, c engine.Call) (event.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return event.Result{}, err
	}
	l.calls = append(l.calls, c.Path)
	l.inputs = append(l.inputs, c)
	return l.answer(c)
}

// ok is the result of a leaf that succeeds and outputs its path.
func ok(c engine.Call) (event.Result, error) {
	return event.Result{OK: true, Output: c.Path, Files: []string{c.Step + ".go"}, Commit: c.Path}, nil
}

func plan(t *testing.T, yaml string, checks ...string) *grimoires.Plan {
	t.Helper()
	g, err := grimoires.Parse("test.yaml", []byte("name: test\ndescription: a test\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	p, err := grimoires.NewLibrary(t.TempDir(), t.TempDir()).Freeze(g, check.Of(checks...))
	if err != nil {
		t.Fatal(err)
	}
	p.Task, p.Model = grimoires.Task{ID: "t-1", Title: "A title"}, "sonnet"
	return p
}

func runPlan(t *testing.T, p *grimoires.Plan, l *leaves) (engine.Outcome, error) {
	t.Helper()
	return engine.Build(p).Run(t.Context(), engine.NewState(l, p, engine.Options{Clock: engine.Clock{Limit: context.WithTimeoutCause}}))
}

func TestTree(t *testing.T) {
	failing := func(paths ...string) func(engine.Call) (event.Result, error) {
		return func(c engine.Call) (event.Result, error) {
			for _, p := range paths {
				if c.Path == p {
					return event.Result{Error: "no"}, nil
				}
			}
			return ok(c)
		}
	}
	tests := []struct {
		name, yaml string
		answer     func(engine.Call) (event.Result, error)
		calls      string
		verdict    engine.Verdict
		status     event.Status
	}{
		{
			"in order", "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y}",
			ok, "a#1 b#1", engine.Passed, "",
		},
		{
			"a failure blocks", "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y}",
			failing("a#1"), "a#1", engine.Stopped, event.StatusBlocked,
		},
		{
			"on_fail: fail", "steps:\n- {name: a, type: script, command: x, on_fail: fail}\n- {name: b, type: script, command: y}",
			failing("a#1"), "a#1", engine.Stopped, event.StatusFailed,
		},
		{
			"on_fail: continue", "steps:\n- {name: a, type: script, command: x, on_fail: continue}\n- {name: b, type: script, command: y}",
			failing("a#1"), "a#1 b#1", engine.Passed, "",
		},
		{
			"retried until it passes", "steps:\n- {name: a, type: script, command: x, on_fail: retry, retries: 2}\n- {name: b, type: script, command: y}",
			failing("a#1"), "a#1 a#2 b#1", engine.Passed, "",
		},
		{
			"retried in vain", "steps:\n- {name: a, type: script, command: x, on_fail: retry, retries: 2}\n- {name: b, type: script, command: y}",
			failing("a#1", "a#2", "a#3"), "a#1 a#2 a#3", engine.Stopped, event.StatusBlocked,
		},
		{
			"retried, then continues", "steps:\n- {name: a, type: script, command: x, on_fail: continue, retries: 1}\n- {name: b, type: script, command: y}",
			failing("a#1", "a#2"), "a#1 a#2 b#1", engine.Passed, "",
		},
		{
			"a pause before each further try", "steps:\n- {name: a, type: script, command: x, retries: 2, backoff: 10s}",
			failing("a#1", "a#2"), "a#1 a/backoff#1 a#2 a/backoff#2 a#3", engine.Passed, "",
		},
		{
			"a loop is tried again", "steps:\n- name: l\n  type: loop\n  retries: 1\n  steps:\n  - {name: a, type: script, command: x}\n  - {name: b, type: script, command: x, retries: 1, on_success: exit_loop}",
			failing("l[1]/b#1", "l[1]/b#2", "l#2[1]/b#1"), "l[1]/a#1 l[1]/b#1 l[1]/b#2 l#2[1]/a#1 l#2[1]/b#1 l#2[1]/b#2", engine.Passed, "",
		},
		{
			"attempts count for their own step", "steps:\n- name: l\n  type: loop\n  retries: 2\n  steps:\n  - name: i\n    type: loop\n    retries: 1\n    steps:\n    - {name: a, type: script, command: x, on_success: exit_loop}\n  - {name: b, type: script, command: x, on_success: exit_loop}",
			failing("l[1]/i[1]/a#1", "l[1]/i#2[1]/a#1", "l#2[1]/b#1"),
			"l[1]/i[1]/a#1 l[1]/i#2[1]/a#1 l#2[1]/i[1]/a#1 l#2[1]/b#1 l#3[1]/i[1]/a#1 l#3[1]/b#1", engine.Passed, "",
		},
		{
			"a template that cannot be rendered fails its step", "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: \"echo {{.steps.a.outputs.url}}\", on_fail: continue}\n- {name: c, type: script, command: z, when: \"{{.steps.b.failed}}\"}",
			ok, "a#1 c#1", engine.Passed, "",
		},
		{
			"a condition that cannot be rendered blocks", "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y, on_fail: continue, when: \"{{.steps.a.outputs.ready}}\"}",
			ok, "a#1", engine.Stopped, event.StatusBlocked,
		},
		{
			"when false", "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y, when: \"{{.previous.failed}}\"}\n- {name: c, type: script, command: z, when: \"{{.steps.b.skipped}}\"}",
			ok, "a#1 c#1", engine.Passed, "",
		},
		{
			"a loop exits", "steps:\n- name: l\n  type: loop\n  max_iterations: 3\n  steps:\n  - {name: a, type: script, command: x, on_fail: continue, on_success: exit_loop}\n  - {name: b, type: script, command: y}\n- {name: c, type: script, command: z}",
			failing("l[1]/a#1"), "l[1]/a#1 l[1]/b#1 l[2]/a#1 c#1", engine.Passed, "",
		},
		{
			"a loop at its limit blocks", "steps:\n- name: l\n  type: loop\n  max_iterations: 2\n  steps:\n  - {name: a, type: script, command: x}\n- {name: c, type: script, command: z}",
			ok, "l[1]/a#1 l[2]/a#1", engine.Stopped, event.StatusBlocked,
		},
		{
			"a loop at its limit continues", "steps:\n- name: l\n  type: loop\n  max_iterations: 2\n  on_max_iterations: continue\n  steps:\n  - {name: a, type: script, command: x}\n- {name: c, type: script, command: z}",
			ok, "l[1]/a#1 l[2]/a#1 c#1", engine.Passed, "",
		},
		{
			"an inner exit leaves the inner loop", "steps:\n- name: o\n  type: loop\n  max_iterations: 2\n  on_max_iterations: continue\n  steps:\n  - name: i\n    type: loop\n    max_iterations: 5\n    steps:\n    - {name: a, type: script, command: x, on_success: exit_loop}\n  - {name: b, type: script, command: y}",
			ok, "o[1]/i[1]/a#1 o[1]/b#1 o[2]/i[1]/a#1 o[2]/b#1", engine.Passed, "",
		},
		{
			"a failure in a loop blocks", "steps:\n- name: l\n  type: loop\n  max_iterations: 2\n  steps:\n  - {name: a, type: script, command: x}",
			failing("l[1]/a#1"), "l[1]/a#1", engine.Stopped, event.StatusBlocked,
		},
		{
			"what was left out has values", "steps:\n- name: l\n  type: loop\n  when: \"{{.previous.failed}}\"\n  steps:\n  - {name: a, type: script, command: x}\n- {name: c, type: script, command: \"echo {{.steps.a.output}}\", when: \"{{.steps.a.skipped}}\"}",
			ok, "c#1", engine.Passed, "",
		},
		{
			"a loop of checks without checks is left out", "steps:\n- name: l\n  type: loop\n  max_iterations: 2\n  steps:\n  - {name: a, type: script, checks: true, on_success: exit_loop}\n- {name: c, type: script, command: z}",
			ok, "c#1", engine.Passed, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &leaves{answer: tt.answer}
			out, err := runPlan(t, plan(t, tt.yaml), l)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.calls, " "); got != tt.calls || out.Verdict != tt.verdict || out.Status != tt.status {
				t.Errorf("calls %q, verdict %v, status %q", got, out.Verdict, out.Status)
			}
		})
	}
}

// The input of a step consists of the results of earlier steps.
func TestHandoff(t *testing.T) {
	l := &leaves{answer: ok}
	_, err := runPlan(t, plan(t, `steps:
- {name: run-tests, type: script, command: x, output: first}
- {name: b, type: script, command: "echo {{.steps.run-tests.output}} {{.first}} {{.artifacts.commit}} {{.task.title}}"}
- name: l
  type: loop
  max_iterations: 2
  on_max_iterations: continue
  steps:
  - {name: c, type: script, command: "echo {{.loop.iteration}} {{.loop_entry.output}} {{.previous.output}}"}
`), l)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"x",
		"echo 'run-tests#1' 'run-tests#1' 'run-tests#1' 'A title'",
		"echo '1' 'b#1' 'b#1'",
		"echo '2' 'b#1' 'l[1]/c#1'",
	} {
		if got := l.inputs[i].Script.Command; strings.ReplaceAll(got, "'", "") != strings.ReplaceAll(want, "'", "") {
			t.Errorf("command %d is %q, want %q", i, got, want)
		}
	}
}

// A step fails when its time is up.
func TestTimeout(t *testing.T) {
	l := &leaves{}
	p := plan(t, "steps:\n- name: l\n  type: loop\n  timeout: 1ms\n  max_iterations: 100\n  steps:\n  - {name: a, type: script, command: x}")
	l.answer = func(c engine.Call) (event.Result, error) {
		<-time.After(2 * time.Millisecond)
		return ok(c)
	}
	out, err := runPlan(t, p, l)
	if err != nil || out.Status != event.StatusBlocked || !strings.Contains(out.Result.Error, "step l took longer than 1ms") {
		t.Errorf("%+v, %v", out, err)
	}
}

// A leaf with a recorded result does not run again.
func TestReplay(t *testing.T) {
	p := plan(t, "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: \"echo {{.previous.output}}\"}\n- {name: c, type: script, command: z}")
	file := filepath.Join(t.TempDir(), "events.jsonl")
	crash := errors.New("crash")
	var done []string
	for round := range 4 {
		journal, err := event.Open(file, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		l := &leaves{answer: func(c engine.Call) (event.Result, error) {
			if len(done) == round {
				return event.Result{}, crash
			}
			done = append(done, c.Path)
			return ok(c)
		}}
		_, err = runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{journal}), l, nil)
		if round < 3 && !errors.Is(err, crash) || round == 3 && err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := journal.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(done) != "[a#1 b#1 c#1]" {
		t.Errorf("done: %v", done)
	}
	// Another plan is rejected.
	journal, err := event.Open(file, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close() //nolint:errcheck // the test is over
	other := plan(t, "steps:\n- {name: a, type: script, command: something else}")
	_, err = runner.RunSteps(t.Context(), other, runner.NewJournal(withoutLogs{journal}), &leaves{answer: ok}, nil)
	if err == nil || !strings.Contains(err.Error(), "different input") {
		t.Errorf("another plan: %v", err)
	}
}

// A person can retry a step.
func TestRetryOnResume(t *testing.T) {
	p := plan(t, "steps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y}")
	journal, err := event.Open(filepath.Join(t.TempDir(), "events.jsonl"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close() //nolint:errcheck // the test is over
	broken := true
	l := &leaves{}
	l.answer = func(c engine.Call) (event.Result, error) {
		if c.Path == "b#1" && broken {
			return event.Result{Error: "no"}, nil
		}
		return ok(c)
	}
	once := func() engine.Outcome {
		out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{journal}), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := once()
	if first.Status != event.StatusBlocked || first.Path != "b#1" {
		t.Fatalf("first: %+v", first)
	}
	if again := once(); again.Status != event.StatusBlocked {
		t.Errorf("a recorded failure is forgotten: %+v", again)
	}
	broken = false
	if err := journal.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: first.Path}); err != nil {
		t.Fatal(err)
	}
	if after := once(); after.Verdict != engine.Passed || strings.Join(l.calls, " ") != "a#1 b#1 b#1" {
		t.Errorf("after: %+v, calls %v", after, l.calls)
	}
}
