package backtest

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/exit"
)

// load loads a grimoire with these steps.
func load(t *testing.T, steps string) *grimoires.Grimoire {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".coven", "grimoires"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".coven", "grimoires", "x.yaml"), []byte("name: x\nsteps:\n"+steps), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := grimoires.NewLibrary(dir, "").Load("x")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// named returns a step.
func named(g *grimoires.Grimoire, name string) grimoires.Step {
	for s := range g.All() {
		if s.Name == name {
			return s
		}
	}
	return grimoires.Step{}
}

const nested = `
- {name: work, type: agent, prompt: implement, on_fail: continue}
- name: quality
  type: agent-loop
  when: "{{.steps.work.success}}"
  reviewers: [agent]
  steps:
  - name: tests
    type: loop
    when: "true"
    steps:
    - {name: run-tests, type: script, checks: true, on_fail: continue, on_success: exit_loop}
    - {name: fix, type: agent, prompt: fix-tests, when: "true", on_fail: continue, input: {output: x}}
    - {name: after, type: script, command: "true"}
- {name: review, type: review, reviewers: [agent]}
- {name: land, type: merge, when: "{{.steps.quality.success}}"}
- {name: late, type: script, command: "true"}
- {name: again, type: merge}
`

// One step runs, and ends the loops around it. The change lands whatever the other steps would have decided.
func TestOnly(t *testing.T) {
	for name, want := range map[string][]string{
		"work":    {"quality", "tests", "run-tests", "fix", "after", "review", "late", "again"},
		"fix":     {"work", "run-tests", "after", "review", "late", "again"},
		"tests":   {"work", "review", "late", "again"},
		"quality": {"work", "review", "late", "again"},
		"late":    {"work", "quality", "tests", "run-tests", "fix", "after", "review", "land"},
	} {
		g := load(t, nested)
		others, err := only(g, name)
		if err != nil || !slices.Equal(others, want) {
			t.Errorf("%s: %q, %v", name, others, err)
		}
		s := named(g, name)
		inner := name == "fix" || name == "tests"
		if s.When != "" || s.OnFail != grimoires.Block || s.ExitLoop != inner {
			t.Errorf("%s: %+v", name, s)
		}
		if _, isLoop := named(g, "quality").Kind.(*grimoires.Loop); isLoop != inner || named(g, "quality").ExitLoop {
			t.Errorf("%s: %T", name, named(g, "quality").Kind)
		}
		if name != "late" && (named(g, "land").When != "" || named(g, "tests").ExitLoop != inner) {
			t.Errorf("%s: %+v, %+v", name, named(g, "land"), named(g, "tests"))
		}
		if _, err := g.YAML(); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"land", "again", "none"} {
		if _, err := only(load(t, nested), name); exit.Next(err) != "coven grimoires show x" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := only(load(t, "- {name: a, type: merge}\n- {name: b, type: script, command: x}\n"), "b"); exit.Next(err) == "" {
		t.Error("no merge step follows")
	}
}

// Only the results of the other steps are given. Those that did not run were skipped.
func TestGivenOf(t *testing.T) {
	s := &step{given: map[string]grimoires.Given{"a": {Ran: true, Output: "x"}, "own": {Ran: true}, "foreign": {Ran: true}}}
	if got := s.givenOf([]string{"a", "b"}); !reflect.DeepEqual(got, map[string]grimoires.Given{"a": {Ran: true, Output: "x"}, "b": {}}) || len(s.given) != 3 {
		t.Errorf("%+v", got)
	}
}

// The changes apply to all steps but the given ones. Nothing is pushed, and the recorded checks judge.
func TestApply(t *testing.T) {
	const steps = `
- {name: one, type: agent, prompt: implement}
- {name: two, type: agent, prompt: implement, agent: other}
- {name: review, type: review, reviewers: [command-x]}
- {name: quality, type: agent-loop, reviewers: [command-x]}
- {name: land, type: merge, checks: ["false"], strategy: rebase, require_review: true, next: push}
`
	g := load(t, steps)
	c := Changes{Agent: "new", Reviewers: []string{"b", "a", "b"}}
	if err := c.apply(g, nil); err != nil {
		t.Fatal(err)
	}
	land := named(g, "land").Kind.(*grimoires.Merge)
	if len(land.Checks) != 0 || land.Push || land.Strategy != "squash" {
		t.Errorf("%+v", land)
	}
	for _, name := range []string{"one", "two"} {
		if a := named(g, name).Kind.(*grimoires.Agent); a.Agent != "new" {
			t.Errorf("%+v", a)
		}
	}
	for _, name := range []string{"review", "quality"} {
		if r := named(g, name).Reviewers(); len(r) != 2 || r[0].Plugin != "a" || r[1].Name != "b" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	g = load(t, steps)
	if err := c.apply(g, []string{"two", "review"}); err != nil || named(g, "two").Kind.(*grimoires.Agent).Agent != "other" || named(g, "review").Reviewers()[0].Plugin != "command-x" {
		t.Errorf("except: %v", err)
	}
	if err := (Changes{}).apply(g, nil); err != nil || named(g, "quality").Reviewers()[0].Plugin != "b" && named(g, "two").Kind.(*grimoires.Agent).Agent != "other" {
		t.Errorf("nothing to change: %v", err)
	}
	for name, c := range map[string]Changes{"agent": {Agent: "x"}, "reviewer": {Reviewers: []string{"x"}}} {
		if err := c.apply(load(t, "- {name: a, type: script, command: x}\n- {name: land, type: merge}\n"), nil); exit.Next(err) == "" {
			t.Errorf("%s: no step uses it", name)
		}
	}
	if err := (Changes{}).apply(load(t, "- {name: a, type: script, command: x}\n"), nil); exit.Next(err) == "" {
		t.Error("nothing lands")
	}
}

// A prompt that only given steps name has no effect. One that no step names is included.
func TestNamedOnlyBy(t *testing.T) {
	g := load(t, nested)
	for prompt, want := range map[string]bool{"fix-tests": true, "implement": false, "task": false} {
		if namedOnlyBy(g, prompt, []string{"fix", "after"}) != want {
			t.Errorf("%s: %v", prompt, !want)
		}
	}
}

// Nothing leaves a scratch repository.
func TestSettings(t *testing.T) {
	cfg := config.Default()
	cfg.Notify, cfg.Telemetry.Endpoint, cfg.Landing.Strategy = []config.Notice{{}}, "http://x", grimoires.PullRequest
	cfg.Worktree.Base, cfg.PriorAttempt = "remote", true
	got := settings(cfg)
	if got.Notify != nil || got.Telemetry != (config.Telemetry{}) || got.GC.Auto || got.PriorAttempt || got.Worktree.Base != "target" || got.Worktree.PoolGB != 0 || got.Landing.Strategy != "squash" {
		t.Errorf("%+v", got)
	}
	if cfg.Landing.Strategy = "merge"; settings(cfg).Landing.Strategy != "merge" {
		t.Error("the strategy")
	}
}
