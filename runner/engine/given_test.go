package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// A step reads the same from given results as from the steps that it ran after. Given results survive the file of the plan.
func TestGiven(t *testing.T) {
	const yaml = `steps:
- {name: first, type: script, command: x, on_fail: continue, output: named}
- {name: left-out, type: script, command: x, when: "false"}
- name: l
  type: loop
  max_iterations: 2
  on_max_iterations: continue
  steps:
  - {name: again, type: script, command: "y"}
  - {name: target, type: script, command: "echo {{.loop_entry}} {{json .steps}} {{.named}} {{json .previous}} {{.loop.iteration}} {{json .artifacts}} {{json .left-out}}"}
- {name: late, type: script, command: "z"}`
	var events []event.Event
	answer := func(c engine.Call) (event.Result, error) {
		return event.Result{
			OK: c.Step != "first", Output: "out of " + c.Path, Outputs: map[string]any{"n": "1"}, Summary: "did " + c.Step, ExitCode: len(c.Step),
			Commit: "c-" + c.Step, Files: []string{c.Step + ".go"}, Error: strings.Repeat("no", len(c.Step)%2),
		}, nil
	}
	record := func(path string, r event.Result) (event.Result, error) {
		data, err := json.Marshal(r)
		events = append(events, event.Event{Seq: int64(len(events)) + 1, Type: event.StepCompleted, Path: path, Data: data})
		return r, err
	}
	run := func(p *grimoires.Plan, l *leaves) {
		t.Helper()
		events = nil
		replay := engine.NewReplay(&engine.History{}, l, engine.Clock{}, record)
		if _, err := engine.Build(p).Run(context.Background(), engine.NewState(replay, p, engine.Options{})); err != nil {
			t.Fatal(err)
		}
	}
	whole := &leaves{answer: answer}
	p := plan(t, yaml)
	run(p, whole)
	recorded := events
	given, err := engine.Given(t.Context(), p, recorded[:2]) // first and again
	if err != nil || len(given) != 2 || given["first"].OK || !given["again"].OK {
		t.Fatalf("%+v, %v", given, err)
	}
	if all, err := engine.Given(t.Context(), p, recorded); err != nil || len(all) != 5 || all["again"].Output != "out of l[2]/again#1" {
		t.Errorf("of a whole run: %+v, %v", all, err)
	}

	given["left-out"], given["late"] = grimoires.Given{}, grimoires.Given{}
	p.Given = given
	text, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if p, err = grimoires.ReadPlan(text); err != nil {
		t.Fatal(err)
	}
	one := &leaves{answer: answer}
	run(p, one)
	if len(one.inputs) != 2 || one.inputs[0].Path != "l[1]/target#1" { // the loop has two iterations
		t.Fatalf("%+v", one.inputs)
	}
	if got, want := one.inputs[0].Script.Command, whole.inputs[2].Script.Command; got != want || !strings.Contains(got, "out of first#1") {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	// A record of another plan is refused.
	other := plan(t, strings.Replace(yaml, "command: x,", "command: other,", 1))
	if _, err := engine.Given(t.Context(), other, recorded); err == nil || !strings.Contains(err.Error(), "different input") {
		t.Error(err)
	}
}
