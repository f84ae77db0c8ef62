package workflowtest_test

import (
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/runner/workflowtest"
)

// Every grimoire that coven ships has tests, which pass and take all of its branches.
func TestShipped(t *testing.T) {
	l := grimoires.NewLibrary("", "")
	names, err := l.Names()
	if err != nil || len(names) < 2 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		g, err := l.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		text, file, err := l.Tests(name)
		if err != nil || file == "" {
			t.Fatalf("%s has no tests: %v", name, err)
		}
		suite, err := workflowtest.Read(file, text, g)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := l.Freeze(g, nil)
		if err != nil {
			t.Fatal(err)
		}
		covered := workflowtest.NewCoverage()
		for _, test := range suite.Tests {
			if o := test.Run(t.Context(), plan, covered); len(o.Faults) > 0 {
				t.Errorf("%s: %s: %s", name, o.Test, strings.Join(o.Faults, "\n"))
			}
		}
		if missing, reached, all := covered.Missing(g); len(missing) > 0 || reached != all {
			t.Errorf("%s: %d of %d branches, not %v", name, reached, all, missing)
		}
	}
}

// A test reports the differences between a run and its expectations.
func TestRun(t *testing.T) {
	const text = `name: g
steps:
- {name: a, type: agent, prompt: task, expect: changes}
- {name: b, type: script, command: "echo {{.steps.a.outputs.n}}", retries: 1, backoff: 1h}
- {name: land, type: merge, on_conflict: agent, message: "{{.steps.a.summary}}"}
`
	g, err := grimoires.Parse("g.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := grimoires.NewLibrary("", "").Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	for tests, want := range map[string]string{
		"steps: {a: {outputs: {n: 7}}}, expect: {given: {b: \"echo '7'\"}, steps: [a, b, land]}":                                       "",
		"steps: {a: {outputs: {n: 7}}}, expect: {given: {b: 'echo 8'}}":                                                                `step b was not given "echo 8"`,
		"steps: {a: {files: []}}, expect: {status: blocked}":                                                                           "",
		"steps: {a: {outputs: {n: 1}}, b: [{exit_code: 1}, {}]}, expect: {steps: [a, b, 'b#2', land]}":                                 "",
		"steps: {a: {outputs: {n: 1}}, land: [{conflict: [x]}, {}]}, expect: {steps: [a, b, land, 'land[1]/resolve', 'land[2]/land']}": "",
		"steps: {a: {summary: s, outputs: {n: 1}}, land: {wait: review}}, expect: {status: waiting, given: {land: s}}":                 "",
		"expect: {status: completed}": `the run ended blocked, want completed: b:1:24: .steps.a.outputs has no "n"`,
	} {
		suite, err := workflowtest.Read("g.test.yaml", []byte("tests: [{name: x, "+tests+"}]"), g)
		if err != nil {
			t.Errorf("%s: %v", tests, err)
			continue
		}
		o := suite.Tests[0].Run(t.Context(), plan, workflowtest.NewCoverage())
		if got := strings.Join(o.Faults, "; "); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s:\n got %q\nwant %q", tests, got, want)
		}
	}
}
