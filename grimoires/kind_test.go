package grimoires

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// everyKind is a grimoire with a step of each kind.
const everyKind = `
name: every
steps:
  - {name: ask, type: agent, prompt: implement, provider: codex, input: {x: "{{.task.id}}"}, env: {TOKEN: "{{.secrets.B_KEY}}"}, workdir: sub}
  - {name: again, type: loop, max_iterations: 1, steps: [{name: check, type: script, command: "test {{.secrets.A_KEY}}", env: {P: q}, on_success: exit_loop}]}
  - {name: look, type: review, reviewers: [lint]}
  - {name: quality, type: agent-loop, patience: 1, max_iterations: 1, reviewers: [agent, {plugin: style, name: s}], arbiter: rules}
  - {name: land, type: merge, on_conflict: agent}
`

func TestEveryKind(t *testing.T) {
	g, err := Parse("every.yaml", []byte(everyKind))
	if err != nil {
		t.Fatal(err)
	}
	var types, plugins, texts []string
	for s := range g.All() {
		types = append(types, s.Kind.Type())
		for _, used := range s.Plugins() {
			plugins = append(plugins, used.Kind+" "+used.Name)
		}
		texts = append(texts, s.Texts()...)
	}
	for name, c := range map[string]struct{ got, want []string }{
		"types":   {types, []string{"agent", "loop", "script", "review", "agent-loop", "merge"}},
		"plugins": {plugins, []string{"provider codex", "reviewer lint", "reviewer agent", "reviewer style", "arbiter rules"}},
		"texts":   {texts, []string{"implement", "sub", "TOKEN={{.secrets.B_KEY}}", "x={{.task.id}}", "test {{.secrets.A_KEY}}", "P=q"}},
		"secrets": {g.Secrets(), []string{"A_KEY", "B_KEY"}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
	seen := map[string]bool{}
	for _, kind := range types {
		seen[kind] = true
	}
	for _, kind := range stepTypes() {
		if !seen[kind] {
			t.Errorf("the grimoire of this test has no step of type %s", kind)
		}
	}
}

// A grimoire with every kind of step can be frozen and read again.
func TestEveryKindSurvivesItsPlan(t *testing.T) {
	g, err := Parse("every.yaml", []byte(everyKind))
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewLibrary("", "").Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	again(t, p)
}

func TestHasAgents(t *testing.T) {
	for step, want := range map[string]bool{
		"type: script, command: x":                                 false,
		"type: merge":                                              false,
		"type: merge, on_conflict: agent":                          true,
		"type: agent, prompt: x":                                   true,
		"type: review, reviewers: [lint]":                          false,
		"type: review, reviewers: [agent]":                         true,
		"type: agent-loop, reviewers: [lint]":                      true,
		"type: review, reviewers: [{plugin: x, prompt: review}]":   true,
		"type: loop, steps: [{name: b, type: script, command: x}]": false,
		"type: loop, steps: [{name: b, type: agent, prompt: x}]":   true,
	} {
		g, err := Parse("f.yaml", []byte(one("name: a, "+step)))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.HasAgents(); got != want {
			t.Errorf("%s: got %v", step, got)
		}
	}
}

func TestStepBudget(t *testing.T) {
	for budget, want := range map[string]string{
		"{}":                 "the budget limits nothing",
		"{usd: 0}":           "a budget must be more than 0",
		"{turns: -1}":        "a budget must be more than 0",
		"{tokens: 0}":        "a budget must be more than 0",
		"{wall: 0s}":         "a duration must be more than 0",
		"{eur: 1}":           `unknown key "eur"`,
		"{reserve: 0.1}":     `unknown key "reserve"`,
		"{usd: 1}":           "",
		"{wall: 1s}":         "",
		"{tokens: 1}":        "",
		"{turns: 1}":         "",
		"{usd: 1, wall: 1m}": "",
	} {
		_, err := Parse("f.yaml", []byte(one("name: a, type: merge, budget: "+budget)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", budget, err)
		}
	}
}

func TestDepth(t *testing.T) {
	nested := func(depth int) string {
		step := "{name: s, type: script, command: x}"
		for i := range depth {
			step = fmt.Sprintf("{name: l%d, type: loop, steps: [%s]}", i, step)
		}
		return "name: g\nsteps: [" + step + "]\n"
	}
	if _, err := Parse("f.yaml", []byte(nested(maxDepth))); err != nil {
		t.Errorf("%d loops: %v", maxDepth, err)
	}
	if _, err := Parse("f.yaml", []byte(nested(maxDepth+1))); err == nil {
		t.Errorf("%d loops were accepted", maxDepth+1)
	}
}

// A value of the wrong type is reported once.
func TestWrongTypes(t *testing.T) {
	for step, want := range map[string]string{
		"type: agent, prompt: x, agent: [y]":                     "f.yaml:3:44: this must be text, not a list",
		"type: agent, prompt: x, env: y":                         "f.yaml:3:42: this must be keys with values, not \"y\"",
		"type: script, command: x, on_success: [exit_loop]":      "f.yaml:3:51: this must be text, not a list",
		"type: merge, on_conflict: {agent: x}":                   "f.yaml:3:39: this must be text, not keys with values",
		"type: merge, next: push, require_review: false":         "f.yaml:3:32: next: push needs a session that waits for you",
		"type: merge, retries: x":                                "f.yaml:3:35: this must be a whole number, not \"x\"",
		"type: agent-loop, reviewers: [agent], max_iterations: ": "f.yaml:3:67: the value is missing",
	} {
		_, err := Parse("f.yaml", []byte(one("name: a, "+step)))
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: got\n%v\nwant\n%s", step, err, want)
		}
	}
	for _, step := range []string{"type: agent-loop, reviewers: [agent], steps: x", "type: loop, steps: x"} {
		_, err := Parse("f.yaml", []byte(one("name: a, "+step)))
		if err == nil || strings.Count(err.Error(), "this must be a list") != 1 {
			t.Errorf("%s: got\n%v", step, err)
		}
	}
}
