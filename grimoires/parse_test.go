package grimoires

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

func TestParse(t *testing.T) {
	g, err := Parse("all.yaml", []byte(`
name: all
description: |
  Everything
budget: {usd: 5, tokens: 2000000, reserve: 0}
steps:
  - {name: a, type: agent, spell: implement.md, input: {x: "{{.task.title}}"}, model: opus, expect: changes, output: work}
  - name: l
    type: loop
    on_max_iterations: exit
    steps:
      - {name: b, type: script, command: "echo {{.work}} {{.a.outputs.n}} {{.steps.c.output}}", env: {PORT: 80}, on_fail: retry, on_success: exit_loop}
      - {name: c, type: script, checks: true, when: true, timeout: 1h, on_fail: continue, retries: 4, backoff: 10s, budget: {turns: 3, wall: 1h}}
  - {name: d, type: merge}
  - {name: e, type: merge, require_review: false, strategy: rebase, message: "{{.task.id}}", checks: [x], on_fail: fail}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Grimoire{
		Name: "all", Description: "Everything", Timeout: 2 * time.Hour, Source: "all.yaml",
		Budget: RunBudget{Amount: budget.Amount{USD: 5, Tokens: 2_000_000}},
		Steps: []Step{
			{Name: "a", Timeout: 15 * time.Minute, OnFail: Block, Output: "work", Kind: &Agent{
				Prompt: "implement.md", Input: map[string]string{"x": "{{.task.title}}"}, Model: "opus", ExpectChanges: true,
			}},
			{Name: "l", OnFail: Block, Kind: &Loop{MaxIterations: 3, OnMaxIterations: Fail, Steps: []Step{
				{Name: "b", Timeout: 5 * time.Minute, OnFail: Block, Retries: 1, ExitLoop: true, Kind: &Script{
					Command: "echo {{.work}} {{.a.outputs.n}} {{.steps.c.output}}", Env: map[string]string{"PORT": "80"},
				}},
				{Name: "c", Timeout: time.Hour, OnFail: Continue, Retries: 4, Backoff: 10 * time.Second, Budget: budget.Amount{Turns: 3, Wall: time.Hour}, When: "true", Kind: &Script{Checks: true}},
			}}},
			{Name: "d", OnFail: Block, Kind: &Merge{RequireReview: true}},
			{Name: "e", OnFail: Fail, Kind: &Merge{Strategy: "rebase", Message: "{{.task.id}}", Checks: check.Of("x")}},
		},
	}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("got %+v", g)
	}
}

// one returns a grimoire with one step, on line 3.
func one(step string) string { return "name: g\nsteps:\n- {" + step + "}\n" }

func TestParseErrors(t *testing.T) {
	for file, want := range map[string]string{
		"": "f.yaml:1:1: the grimoire has no name\nf.yaml:1:1: there are no steps (list at least one under steps)",
		"name: a b\nsteps: []\n": "f.yaml:1:1: there are no steps (list at least one under steps)\n" +
			`f.yaml:1:7: "a b" cannot be a name (letters, digits, - and _, at most 64, the first a letter or digit)`,
		"name: g\nstep: x\nsteps: [{name: a, type: merge}]":                      `f.yaml:2:1: unknown key "step" (did you mean "steps"?)`,
		"name: g\nbudget: {eur: 5}\nsteps: [{name: a, type: merge}]":             `f.yaml:2:10: unknown key "eur" (known: usd, tokens, turns, wall, reserve)`,
		"name: g\nbudget: {}\nsteps: [{name: a, type: merge}]":                   `f.yaml:2:9: the budget limits nothing (usd, tokens, turns or wall)`,
		"name: g\nbudget: {usd: 0}\nsteps: [{name: a, type: merge}]":             `f.yaml:2:15: a budget must be more than 0`,
		"name: g\nbudget: {usd: 1, reserve: 1}\nsteps: [{name: a, type: merge}]": `f.yaml:2:27: reserve is a share of the budget: 0 to 0.9`,
		one("name: a, type: agent, prompt: x, workdir: ../up"):                   `f.yaml:3:46: "../up" is not a directory inside the worktree`,
		one("name: a, type: agent, prompt: x, workdir: /tmp"):                    `f.yaml:3:46: "/tmp" is not a directory inside the worktree`,
		one("name: a, type: agent, prompt: x, agent: My Agent"):                  `f.yaml:3:44: "My Agent" cannot be the name of an agent (small letters, digits and -, the first a letter or digit)`,
		one("name: a, type: agent, prompt: x, provider: Claud"):                  `f.yaml:3:47: "Claud" cannot be the name of a plugin (small letters, digits and -, the first a letter or digit)`,
		one("name: a, type: script, checks: true, workdir: x"):                   `f.yaml:3:50: checks run at the top of the worktree`,
		one("type: merge"):                                                                          `f.yaml:3:3: a step has no name`,
		one("name: a"):                                                                              `f.yaml:3:3: a step has no type (type: agent, script, loop, review, agent-loop, merge)`,
		one("name: a, type: agnet"):                                                                 `f.yaml:3:19: "agnet" is not one of agent, script, loop, review, agent-loop, merge (did you mean "agent"?)`,
		one("name: a, type: review"):                                                                `f.yaml:3:3: the step "a" has no reviewers (reviewers: [agent])`,
		one("name: -a, type: merge"):                                                                `f.yaml:3:10: "-a" cannot be a name`,
		one("name: a, type: merge, backoff: 3s"):                                                    `f.yaml:3:35: backoff has no effect without retries (retries: 2)`,
		one("name: a, type: agent"):                                                                 `f.yaml:3:3: the agent step "a" has no prompt`,
		one("name: a, type: agent, prompt: ' '"):                                                    `f.yaml:3:34: the prompt is empty`,
		one("name: a, type: agent, prompt: x, spell: y"):                                            `f.yaml:3:44: prompt and spell are two names of one key (keep prompt)`,
		one("name: a, type: agent, prompt: x, expect: change"):                                      `f.yaml:3:45: "change" is not one of changes (did you mean "changes"?)`,
		one("name: a, type: agent, prompt: x, command: y"):                                          `f.yaml:3:37: unknown key "command"`,
		one("name: a, type: agent, prompt: x, input: {'a b': c}"):                                   `f.yaml:3:52: "a b" cannot be a name`,
		one("name: a, type: script"):                                                                `f.yaml:3:3: the script step "a" has no command (command: a shell command, or checks: true)`,
		one("name: a, type: script, checks: false"):                                                 `f.yaml:3:3: the script step "a" has no command`,
		one("name: a, type: script, checks: true, command: x"):                                      `f.yaml:3:35: a script step has a command or checks, not both`,
		one("name: a, type: script, command: ' '"):                                                  `f.yaml:3:36: the command is empty`,
		one("name: a, type: script, command: x, env: {A-B: c}"):                                     `f.yaml:3:50: "A-B" cannot be the name of a variable`,
		one("name: a, type: script, command: x, env: {COVEN_X: c}"):                                 `f.yaml:3:54: "COVEN_X" is coven's own variable`,
		one("name: a, type: script, command: x, timeout: 5"):                                        `f.yaml:3:48: "5" is not a duration (a unit is missing: 5s or 5m?)`,
		one("name: a, type: script, command: x, retries: 0"):                                        `f.yaml:3:48: retries must be 1 to 10`,
		one("name: a, type: script, command: x, on_fail: retry, retries: 11"):                       `f.yaml:3:64: retries must be 1 to 10`,
		one("name: a, type: script, command: x, on_fail: blok"):                                     `f.yaml:3:48: "blok" is not one of block, continue, fail, retry (did you mean "block"?)`,
		one("name: a, type: script, command: x, on_success: exit_loop"):                             `f.yaml:3:51: there is no loop to exit here`,
		one("name: a, type: script, command: x, output: task"):                                      `f.yaml:3:47: output name "task" is reserved in templates`,
		one("name: a, type: script, command: x, output: 'a b'"):                                     `f.yaml:3:47: "a b" cannot be a name`,
		one("name: a, type: merge, message: '{{.secrets.x}}'"):                                      `f.yaml:3:38: a secret cannot be used here: it would be recorded (command, or env of a step)`,
		one("name: a, type: script, command: 'x {{.secrets}}'"):                                     `f.yaml:3:41: missing name of a secret ({{.secrets.NAME}})`,
		one("name: a, type: script, command: x, env: {A: '{{.secrets.a-b}}'}"):                      `f.yaml:3:59: "a-b" cannot be the name of a secret`,
		one("name: a, type: script, command: x, output: secrets"):                                   `f.yaml:3:47: output name "secrets" is reserved in templates`,
		one("name: a, type: loop"):                                                                  `f.yaml:3:3: there are no steps`,
		one("name: a, type: loop, max_iterations: 0, steps: [{name: b, type: script, command: x}]"): `f.yaml:3:41: max_iterations must be 1 to 100`,
		one("name: a, type: loop, steps: [{name: b, type: merge}]"):                                 `f.yaml:3:49: a merge step cannot be inside a loop (put it after the loop)`,
		one("name: a, type: loop, steps: [{name: a, type: script, command: x}]"):                    `f.yaml:3:40: duplicate step name "a" (names are unique in a grimoire, those in loops too)`,
		one("name: a, type: merge, strategy: squish"):                                               `f.yaml:3:36: "squish" is not one of squash, merge, rebase, pull-request (did you mean "squash"?)`,
		one("name: a, type: merge, checks: []"):                                                     `f.yaml:3:34: the list of checks is empty`,
		one("name: a, type: merge, checks: true"):                                                   `f.yaml:3:34: this must be a list, not "true"`,
		one("name: a, type: merge}\n- {name: b, type: script, command: x, output: a"):               `f.yaml:4:47: output name "a" is the name of a step`,
		"name: g\nsteps:\n-\n":                                                                      `f.yaml:3:2: a step has no type`,
		"name: g\nsteps: [x]":                                                                       `f.yaml:2:9: a step has no type`,
		"name: g\nsteps: &a [{name: x, type: loop, steps: *a}]":                                     `loops nest deeper than 8`,

		one("name: a, type: merge, when: yes"):                                                                                      `f.yaml:3:32: when must evaluate to true or false, not "yes"`,
		one("name: a, type: merge, when: '{{.task.titel}}'"):                                                                        `f.yaml:3:40: .task has no "titel" (did you mean "title"?)`,
		one("name: a, type: merge, when: '{{.previous.ok}}'"):                                                                       `f.yaml:3:44: .previous has no "ok" (known: commit, error,`,
		one("name: a, type: merge, when: '{{.tsk.title}}'"):                                                                         `f.yaml:3:35: there is no "tsk" (did you mean "task"?)`,
		one("name: a, type: merge, when: '{{.input.x}}'"):                                                                           `f.yaml:3:41: there is no input "x"`,
		one("name: a, type: merge, when: '{{.attempt.x}}'"):                                                                         `f.yaml:3:43: .attempt has no parts`,
		one("name: a, type: merge, when: '{{.task.id | uper}}'"):                                                                    `f.yaml:3:33: unknown function "uper" (did you mean "upper"?)`,
		one("name: a, type: merge, message: '{{.steps.nope.output}}'"):                                                              `f.yaml:3:44: there is no step "nope"`,
		one("name: a, type: merge, message: '{{.steps.a.output}}'"):                                                                 `f.yaml:3:44: the step "a" has not ended when "a" begins`,
		one("name: a, type: merge, message: '{{.later.output}}'}\n- {name: later, type: merge"):                                     `f.yaml:3:38: the step "later" has not ended when "a" begins`,
		one("name: a, type: script, command: \"echo '{{.task.id}}'\""):                                                              `f.yaml:3:45: a value inside quotes could break out of them (remove the quotes: coven quotes values itself)`,
		one("name: a, type: script, command: x, env: {A: '{{.x'}"):                                                                  `f.yaml:3:49: unclosed action`,
		one("name: a, type: agent, prompt: p, input: {x: '{{.input.y}}'}"):                                                          `f.yaml:3:57: there is no input "y"`,
		one("name: l, type: loop, steps: [{name: a, type: script, command: 'x {{.l.output}}'}]"):                                    `f.yaml:3:73: .l has no "output": the loop has not ended when "a" begins (known: iteration, max_iterations)`,
		"name: g\nsteps:\n- name: a\n  type: script\n  command: |\n    true\n    echo {{.steps.b.otput}}\n- {name: b, type: merge}": `f.yaml:7:18: the step "b" has not ended`,
	} {
		_, err := Parse("f.yaml", []byte(file))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", file, err, want)
		}
		if err != nil && (!errors.As(err, new(yamldoc.Errors)) || !IsInvalid(err)) {
			t.Errorf("%s: the error is a %T", file, err)
		}
	}
}

// All errors of a file are reported together in file order, and a step of an unknown type is still a known
// step.
func TestParseSaysEverything(t *testing.T) {
	_, err := Parse("f.yaml", []byte("name: g\nsteps:\n- {name: a, type: scrpt, x: y}\n- {name: b, type: merge, nope: 1, message: '{{.a.output}}{{.steps.c.output}}'}\n- {name: c, typ: x}\n"))
	want := `f.yaml:3:19: "scrpt" is not one of agent, script, loop, review, agent-loop, merge (did you mean "script"?)
f.yaml:4:26: unknown key "nope" (known: name, type, when, timeout, on_fail, retries, backoff, budget, on_success, output, require_review, strategy, message, checks, on_conflict, next)
f.yaml:4:66: the step "c" has not ended when "b" begins (only earlier steps, and steps of the same loop, can be named)
f.yaml:5:3: a step has no type (type: agent, script, loop, review, agent-loop, merge)`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestOnlyChecks(t *testing.T) {
	check, command, agent := Step{Kind: &Script{Checks: true}}, Step{Kind: &Script{Command: "x"}}, Step{Kind: &Agent{}}
	for want, steps := range map[bool][]Step{
		true: {check, {Kind: &Loop{Steps: []Step{check, agent}}}, {Kind: &Loop{Steps: []Step{agent, {Kind: &Loop{Steps: []Step{check}}}}}}},
		false: {
			command, agent,
			{Kind: &Merge{}},
			{Kind: &Loop{Steps: []Step{agent}}},
			{Kind: &Loop{Steps: []Step{check, command}}},
			{Kind: &Loop{Steps: []Step{check, {Kind: &Loop{Steps: []Step{command}}}}}},
		},
	} {
		for i, s := range steps {
			if s.OnlyChecks() != want {
				t.Errorf("%v, %d: got %v", want, i, !want)
			}
		}
	}
}

func TestAllStopsEarly(t *testing.T) {
	g := &Grimoire{Steps: []Step{{Name: "a", Kind: &Loop{Steps: []Step{{Name: "b"}, {Name: "c"}}}}, {Name: "d"}}}
	for _, last := range []string{"a", "b", "c", "d"} {
		seen := ""
		for s := range g.All() {
			seen += s.Name
			if s.Name == last {
				break
			}
		}
		if want := "abcd"[:strings.Index("abcd", last)+1]; seen != want {
			t.Errorf("got %s, want %s", seen, want)
		}
	}
}

// Parse never panics, and a parsed grimoire can be frozen and read again.
func FuzzParse(f *testing.F) {
	f.Add(one("name: a, type: merge, when: '{{.task.id}}'"))
	f.Add("name: g\nsteps: &a [{name: x, type: loop, steps: *a}]")
	f.Add("name: g\nsteps:\n- {name: a, type: script, command: \"x {{.task.id}}\\n\\t\", env: {A: ''}}\n- {name: b, type: agent, prompt: \"a\\nb \", input: {x: ' '}}")
	f.Fuzz(func(t *testing.T, file string) {
		g, err := Parse("f.yaml", []byte(file))
		if err != nil {
			if !IsInvalid(err) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		again(t, &Plan{Grimoire: g, Prompts: namedPrompts(g)})
	})
}

func namedPrompts(g *Grimoire) map[string]Prompt {
	all := map[string]Prompt{}
	for s := range g.All() {
		if a, ok := s.Kind.(*Agent); ok && !isInline(a.Prompt) {
			name := strings.TrimSuffix(a.Prompt, ".md")
			all[name] = Prompt{Name: name, Source: BuiltIn}
		}
	}
	return all
}
