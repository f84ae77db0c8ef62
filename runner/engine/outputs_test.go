package engine_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner/engine"
)

// said returns the prompts of the agents by path.
func said(l *leaves) map[string]string {
	out := map[string]string{}
	for _, c := range l.inputs {
		if c.Agent != nil {
			out[c.Path] = strings.TrimSpace(c.Agent.Prompt)
		}
	}
	return out
}

// original 3c 6: conditions in loops are evaluated; an output of a step in a loop is preserved and contains
// the parts of the result; inner steps can use the names of loops, whose iterations count from 1.
func TestOutputsInLoops(t *testing.T) {
	p := plan(t, `
steps:
  - name: outer
    type: loop
    max_iterations: 2
    on_max_iterations: continue
    steps:
      - {name: look, type: script, command: look, output: look}
      - name: inner
        type: loop
        max_iterations: 2
        on_max_iterations: continue
        steps:
          - name: fix
            type: agent
            when: '{{and (eq .outer.iteration 2) (eq .look "two")}}'
            output: work
            prompt: |
              {{.outer.iteration}}.{{.inner.iteration}}={{.loop.iteration}}/{{.loop.max_iterations}} {{.look}} {{.look.exit_code}}
      - name: tell
        type: agent
        prompt: |
          {{.work}}|{{.work.success}}|{{.work.skipped}}|{{.fix.summary}}{{if .work.success}}|{{.work.outputs.url}} {{.fix.outputs.url}}{{end}}
`)
	looks := 0
	l := &leaves{answer: func(c engine.Call) (event.Result, error) {
		r := event.Result{OK: true}
		switch c.Step {
		case "look":
			looks++
			r.Output = []string{"one", "two"}[looks-1]
		case "fix":
			r.Output, r.Summary, r.Outputs = "fixed {{.task.title}}", "sum", map[string]any{"url": "http://x"}
		}
		return r, nil
	}}
	if out, err := runPlan(t, p, l); err != nil || out.Verdict != engine.Passed {
		t.Fatalf("%+v, %v", out, err)
	}
	want := map[string]string{
		"outer[1]/tell":         "|false|true|",
		"outer[2]/inner[1]/fix": "2.1=1/2 two 0",
		"outer[2]/inner[2]/fix": "2.2=2/2 two 0",
		"outer[2]/tell":         "fixed {{.task.title}}|true|false|sum|http://x http://x",
	}
	got := said(l)
	for path, text := range want {
		found := ""
		for at, prompt := range got {
			if strings.HasPrefix(at, path) {
				found = prompt
			}
		}
		if found != text {
			t.Errorf("%s: got %q, want %q", path, found, text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("asked %v", got)
	}
}
