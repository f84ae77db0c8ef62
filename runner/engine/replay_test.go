package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
	"pgregory.net/rapid"
)

type paper struct{ events []event.Event }

func (p *paper) Events() []event.Event { return slices.Clone(p.events) }

func (p *paper) Append(e event.Event, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	e.Seq, e.Data = int64(len(p.events))+1, raw
	p.events = append(p.events, e)
	return nil
}

// withoutLogs makes a journal of a record of events, because the tree reads no logs.
type withoutLogs struct{ record }

type record interface {
	Events() []event.Event
	Append(e event.Event, data any) error
}

func (withoutLogs) OpenLog(string) (io.WriteCloser, int64, error) {
	return nil, 0, errors.ErrUnsupported
}

func (withoutLogs) ReadLog(string, int64) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// fate returns a function that answers a call depending on its path and a seed.
func fate(seed int) func(engine.Call) (event.Result, error) {
	return func(c engine.Call) (event.Result, error) {
		h := fnv.New32a()
		_, _ = fmt.Fprintf(h, "%d %s", seed, c.Path)
		n := h.Sum32()
		r := event.Result{
			OK: n%3 != 0, Output: fmt.Sprint(n % 7), Outputs: map[string]any{"n": n % 5},
			Files: []string{c.Step}, Commit: c.Path, Tree: fmt.Sprint(n % 4),
		}
		if !r.OK {
			r.Error = "no"
		}
		switch {
		case c.Review != nil && n%3 == 1:
			r = found(int(n%4)+1, int(n%5))
		case c.Arbiter != nil && r.OK:
			r.Decided, r.Continue = true, n%4 != 0
		case c.Agent != nil:
			r.Agent = "build"
		}
		return r, nil
	}
}

// grimoire draws nested steps of every kind, with conditions and retries.
func grimoire(t *rapid.T) string {
	n := 0
	atMost := func(line func(string, ...any)) {
		line("max_iterations: %d", rapid.IntRange(1, 3).Draw(t, "iterations"))
		line("on_max_iterations: %s", rapid.SampledFrom([]string{"continue", "continue", "block", "fail"}).Draw(t, "on_max"))
	}
	var steps func(depth int, exits bool, indent string) string
	steps = func(depth int, exits bool, indent string) string {
		var b strings.Builder
		for range rapid.IntRange(1, 3).Draw(t, "steps") {
			n++
			name, kind := fmt.Sprintf("s%d", n), rapid.SampledFrom([]string{"script", "agent", "loop", "review", "agent-loop"}).Draw(t, "kind")
			if depth == 3 && strings.HasSuffix(kind, "loop") {
				kind = "script"
			}
			fmt.Fprintf(&b, "%s- name: %s\n%s  type: %s\n", indent, name, indent, kind)
			line := func(format string, args ...any) { fmt.Fprintf(&b, indent+"  "+format+"\n", args...) }
			line("on_fail: %s", rapid.SampledFrom([]string{"continue", "continue", "block", "retry", "fail"}).Draw(t, "on_fail"))
			if rapid.Bool().Draw(t, "retries") {
				line("retries: %d", rapid.IntRange(1, 2).Draw(t, "n"))
			}
			if rapid.IntRange(0, 3).Draw(t, "when") == 0 {
				line(`when: "{{.previous.failed}}"`)
			}
			if exits && rapid.Bool().Draw(t, "exits") {
				line("on_success: exit_loop")
			}
			switch kind {
			case "script":
				line(`command: echo {{.previous.output}} {{.loop.iteration}}`)
				line("output: o%d", n)
			case "agent":
				line(`input: {x: "{{.previous.output}}"}`)
				line("prompt: |\n%s    {{.input.x}}\n%s    {{.loop_entry.output}}", indent, indent)
			case "loop":
				atMost(line)
				line("steps:\n%s", strings.TrimSuffix(steps(depth+1, true, indent+"  "), "\n"))
			case "review":
				line("reviewers: [agent, rules]")
				line("output: o%d", n)
			case "agent-loop":
				atMost(line)
				line("reviewers: [agent]")
				line("output: o%d", n)
				if rapid.Bool().Draw(t, "impatient") {
					line("patience: %d", rapid.IntRange(1, 2).Draw(t, "patience"))
				}
				if rapid.Bool().Draw(t, "inner") {
					line("steps:\n%s", strings.TrimSuffix(steps(depth+1, false, indent+"  "), "\n"))
				}
			}
		}
		return b.String()
	}
	return "name: drawn\nsteps:\n" + steps(0, false, "")
}

// Wherever a run is interrupted, the same tree continues with the first leaf without a result, repeats no
// leaf, and has the same outcome.
func TestReplayAnywhere(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := grimoire(t)
		g, err := grimoires.Parse("drawn.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		p, err := grimoires.NewLibrary(dir, "").Freeze(g, check.Of("check"))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		answer := fate(rapid.IntRange(0, 1000).Draw(t, "seed"))
		whole, first := &paper{}, &leaves{answer: answer}
		want, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{whole}), first, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for cut := range whole.events {
			part, rest := &paper{events: slices.Clone(whole.events[:cut])}, &leaves{answer: answer}
			got, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{part}), rest, nil)
			if err != nil || got.Verdict != want.Verdict || got.Status != want.Status || got.Path != want.Path {
				t.Fatalf("cut at %d: %+v, %v; want %+v\n%s", cut, got, err, want, text)
			}
			if !slices.Equal(rest.calls, first.calls[cut:]) {
				t.Fatalf("cut at %d: ran %q, want %q\n%s", cut, rest.calls, first.calls[cut:], text)
			}
		}
	})
}

// A loop whose time is up ends with the current leaf. A replay ends it at the same leaf and runs no other.
func TestReplayTimeout(t *testing.T) {
	p := plan(t, `timeout: 1h
steps:
- name: l
  type: loop
  timeout: 30ms
  max_iterations: 5
  on_fail: continue
  steps:
  - {name: a, type: script, command: x}
  - {name: b, type: script, command: x, on_fail: continue}
- {name: c, type: script, command: y, when: "{{.l.failed}}"}`)
	journal := &paper{}
	cut := leafFunc(func(ctx context.Context, c engine.Call) (event.Result, error) {
		if c.Path != "l[2]/b#1" {
			return ok(c)
		}
		<-ctx.Done()
		return event.Result{Error: "cut off"}, nil
	})
	out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{journal}), cut, nil)
	if err != nil || out.Verdict != engine.Passed {
		t.Fatalf("%+v, %v", out, err)
	}
	want := []string{"l[1]/a#1", "l[1]/b#1", "l[2]/a#1", "l[2]/b#1", "c#1"}
	var recorded []string
	for _, e := range journal.events {
		recorded = append(recorded, e.Path)
	}
	if !slices.Equal(recorded, want) {
		t.Fatalf("recorded %q", recorded)
	}
	again := &leaves{answer: ok}
	journal.events = journal.events[:4]
	out, err = runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{journal}), again, nil)
	if err != nil || out.Verdict != engine.Passed || !slices.Equal(again.calls, []string{"c#1"}) {
		t.Errorf("replayed: %+v, %v, ran %q", out, err, again.calls)
	}
}

// The working time of earlier processes counts toward the limit of a step, unless a person retries it.
func TestTimeOfEarlierProcesses(t *testing.T) {
	p := plan(t, "timeout: 10m\nsteps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y}")
	worked := func(wall time.Duration) *paper {
		j, l := &paper{}, &leaves{answer: func(c engine.Call) (event.Result, error) {
			r, err := ok(c)
			r.Used.Wall = wall
			return r, err
		}}
		if _, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{j}), l, nil); err != nil {
			t.Fatal(err)
		}
		j.events = j.events[:1]
		return j
	}
	run := func(j *paper) (engine.Outcome, []string) {
		l := &leaves{answer: ok}
		out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{j}), l, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out, l.calls
	}
	if out, calls := run(worked(9 * time.Minute)); out.Verdict != engine.Passed || len(calls) != 1 {
		t.Errorf("a minute was left: %+v, %q", out, calls)
	}
	if out, calls := run(worked(11 * time.Minute)); out.Verdict != engine.Failed || out.Result.Error != "the run took longer than 10m0s" || len(calls) != 0 {
		t.Errorf("the time was up: %+v, %q", out, calls)
	}
	j := worked(11 * time.Minute)
	if err := j.Append(event.Event{Type: event.SessionResumed}, event.Resumed{Retry: "b#1"}); err != nil {
		t.Fatal(err)
	}
	if out, calls := run(j); out.Verdict != engine.Passed || len(calls) != 1 {
		t.Errorf("a person had it go on: %+v, %q", out, calls)
	}
}

// The usage of an agent counts even if the time is up before its leaf has a result: during the commit, or
// before the agent continues.
func TestUsedWhenTimeIsUp(t *testing.T) {
	p := plan(t, "timeout: 10m\nsteps:\n- {name: a, type: script, command: x}\n- {name: b, type: script, command: y, timeout: 30ms, on_fail: continue}")
	used := func(j *paper) budget.Amount {
		for _, e := range j.events {
			var r event.Result
			if e.Type == event.StepCompleted && e.Path == "b#1" && e.Decode(&r) == nil {
				return budget.Amount{USD: r.Used.USD, Turns: r.Used.Turns}
			}
		}
		return budget.Amount{}
	}
	want := budget.Amount{USD: 2, Turns: 3}
	j := &paper{}
	cut := leafFunc(func(ctx context.Context, c engine.Call) (event.Result, error) {
		if c.Path == "a#1" {
			return ok(c)
		}
		<-ctx.Done()
		return event.Result{Used: want}, context.Cause(ctx)
	})
	if out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{j}), cut, nil); err != nil || used(j) != want {
		t.Errorf("while it was committed: %+v, %v, used %+v", out, err, used(j))
	}

	j.events = j.events[:1]
	var a event.Result
	if err := j.events[0].Decode(&a); err != nil {
		t.Fatal(err)
	}
	a.Used.Wall = time.Hour
	j.events = nil
	for _, e := range []struct {
		what event.Type
		path string
		data any
	}{
		{event.StepCompleted, "a#1", a},
		{event.StepStarted, "b#1", event.StepStart{}},
		{event.AgentStarted, "b#1", event.AgentStart{}},
		{event.AgentUsage, "b#1", event.Usage{Cost: 2, Turns: 3}},
		{event.SessionResumed, "", event.Resumed{}},
	} {
		if err := j.Append(event.Event{Type: e.what, Path: e.path}, e.data); err != nil {
			t.Fatal(err)
		}
	}
	indexed := runner.NewJournal(withoutLogs{j})
	out, err := runner.RunSteps(t.Context(), p, indexed, &runner.Executor{Journal: indexed}, nil)
	if err != nil || used(j) != want {
		t.Errorf("before it went on: %+v, %v, used %+v", out, err, used(j))
	}
}

// leafFunc implements Leaves with a function.
type leafFunc func(ctx context.Context, c engine.Call) (event.Result, error)

func (f leafFunc) Do(ctx context.Context, c engine.Call) (event.Result, error) { return f(ctx, c) }
