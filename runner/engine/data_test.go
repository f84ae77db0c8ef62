package engine_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// Templates print results into the input of leaves. The text must not change, because otherwise sessions of
// earlier versions could not be resumed.
func TestDataText(t *testing.T) {
	const yaml = `steps:
- {name: a, type: script, command: x}
- name: l
  type: loop
  max_iterations: 1
  on_max_iterations: continue
  steps:
  - {name: b, type: script, command: "echo {{.a}}"}
  - {name: c, type: script, command: "echo {{.loop_entry}}"}`
	const want = `{"commit":"a#1","error":"","exit_code":0,"failed":false,"files":["a.go"],"output":"a#1","outputs":{},"skipped":false,"status":"success","success":true,"summary":""}`
	p, l := plan(t, yaml), &leaves{answer: ok}
	if _, err := runPlan(t, p, l); err != nil {
		t.Fatal(err)
	}
	for _, c := range l.inputs[1:] {
		if got := strings.Trim(strings.TrimPrefix(c.Script.Command, "echo "), "'"); got != want {
			t.Errorf("%s: %s\nwant %s", c.Path, got, want)
		}
	}
}

// loop_entry contains the steps before the loop at its start, and status is the outcome of a step.
func TestLoopEntry(t *testing.T) {
	p := plan(t, `steps:
- {name: first, type: script, command: x, on_fail: continue}
- {name: left-out, type: script, command: x, when: "false"}
- name: l
  type: loop
  max_iterations: 2
  on_max_iterations: continue
  steps:
  - {name: again, type: script, command: "echo {{.loop_entry.output}} {{.loop_entry.first.output}} {{.first.status}} {{.left-out.status}} {{.previous.status}}"}
  - name: inner
    type: loop
    max_iterations: 1
    on_max_iterations: continue
    steps:
    - {name: deep, type: script, command: "echo {{.loop_entry.again.output}} {{.again.status}}"}`)
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		r, err := ok(c)
		r.OK = c.Step != "first"
		return r, err
	}}
	if _, err := runPlan(t, p, l); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range l.inputs[1:] {
		got = append(got, strings.ReplaceAll(strings.TrimPrefix(c.Script.Command, "echo "), "'", ""))
	}
	want := []string{
		"first#1 first#1 failed skipped failed", "l[1]/again#1 success",
		"first#1 first#1 failed skipped success", "l[2]/again#1 success",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
