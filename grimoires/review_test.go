package grimoires

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const judgedFile = `name: judged
budget: {usd: 1}
steps:
- {name: make, type: script, command: ls}
- name: look
  type: review
  timeout: 3m
  retries: 1
  on_fail: continue
  output: seen
  budget: {turns: 5}
  reviewers: [agent, {plugin: command, name: vet, with: {command: "go vet ./...", severity: warning}}]
- name: quality
  type: agent-loop
  when: "{{.look.failed}}"
  on_fail: continue
  reviewers:
  - {plugin: agent, name: sharp, prompt: "Look at {{.task.title}}\nclosely."}
  - style
  arbiter: {plugin: agent, with: {model: haiku}}
  fix: "Fix\n{{.input.findings}} {{.input.reason}}"
  max_iterations: 5
  patience: 2
  on_max_iterations: exit
  steps:
  - {name: check, type: script, command: "echo {{.seen}}"}
- {name: short, type: agent-loop, reviewers: [agent]}
- {name: land, type: merge, message: "{{.quality.output}}"}
`

func TestParseReview(t *testing.T) {
	g, err := Parse("f.yaml", []byte(judgedFile))
	if err != nil {
		t.Fatal(err)
	}
	look, quality, short := g.Steps[1], g.Steps[2], g.Steps[3]
	if want := (&Review{Reviewers: []Reviewer{
		{Name: "agent", Plugin: "agent", Prompt: ReviewPrompt},
		{Name: "vet", Plugin: "command", With: map[string]string{"command": "go vet ./...", "severity": "warning"}},
	}}); !reflect.DeepEqual(look.Kind, want) || look.Timeout != 3*time.Minute || look.Retries != 1 || look.OnFail != Continue || look.Output != "seen" || look.Budget.Turns != 5 {
		t.Errorf("review: %+v %+v", look, look.Kind)
	}
	if want := (&AgentLoop{
		Reviewers: []Reviewer{{Name: "sharp", Plugin: "agent", Prompt: "Look at {{.task.title}}\nclosely."}, {Name: "style", Plugin: "style"}},
		Arbiter:   Reviewer{Name: "agent", Plugin: "agent", Prompt: ArbiterPrompt, With: map[string]string{"model": "haiku"}},
		Fix:       "Fix\n{{.input.findings}} {{.input.reason}}", MaxIterations: 5, OnMaxIterations: Fail, Patience: 2, Steps: quality.Inner(),
	}); !reflect.DeepEqual(quality.Kind, want) || len(want.Steps) != 1 || quality.Timeout != 0 {
		t.Errorf("agent-loop: %+v", quality.Kind)
	}
	if want := (&AgentLoop{
		Reviewers: look.Reviewers()[:1], Arbiter: Reviewer{Name: "rules", Plugin: "rules"}, Fix: FixPrompt, MaxIterations: 3, OnMaxIterations: Block,
	}); !reflect.DeepEqual(short.Kind, want) {
		t.Errorf("its defaults: %+v", short.Kind)
	}
}

func TestParseReviewErrors(t *testing.T) {
	for step, want := range map[string]string{
		"type: review, reviewers: []":                                                       `3:3: the step "a" has no reviewers (reviewers: [agent])`,
		"type: review, reviewers: agent":                                                    `3:38: this must be a list`,
		"type: review, reviewer: [agent]":                                                   "3:3: the step \"a\" has no reviewers (reviewers: [agent])\nf.yaml:3:27: unknown key \"reviewer\" (did you mean \"reviewers\"?)",
		"type: review, reviewers: [Agent]":                                                  `3:39: "Agent" cannot be the name of a plugin (small letters, digits and -, the first a letter or digit)`,
		"type: review, reviewers: [agent, agent]":                                           `3:46: duplicate reviewer name "agent" (give one of them another name)`,
		"type: review, reviewers: [{name: x}]":                                              `3:39: a reviewer or arbiter of step "a" has no plugin (plugin: agent)`,
		"type: review, reviewers: [{plugin: style, nmae: x}]":                               `3:55: unknown key "nmae" (did you mean "name"?)`,
		"type: review, reviewers: [{plugin: style, name: a/b}]":                             `"a/b" cannot be a name (letters, digits, - and _)`,
		"type: review, reviewers: [{plugin: style, with: {prompt: x}}]":                     `3:70: prompt is not an option of a plugin (write prompt next to with)`,
		"type: review, reviewers: [{plugin: style, with: {n: [1]}}]":                        `3:65: this must be text, not a list`,
		"type: review, reviewers: [{plugin: command, with: {commnad: x}}]":                  "3:39: there is no command to run (with: {command: a shell command})\nf.yaml:3:73: command has no option \"commnad\" (did you mean \"command\"?)",
		"type: review, reviewers: [{plugin: command, with: {command: x, timeout: 3}}]":      `3:85: command has no option "timeout" (it has command, format, scope, severity)`,
		"type: review, reviewers: [{plugin: command, with: {command: x, format: xml}}]":     `3:84: "xml" is not one of lines, sarif`,
		"type: review, reviewers: [{plugin: command, with: {command: x, scope: al}}]":       `"al" is not one of changed, all`,
		"type: review, reviewers: [{plugin: command, with: {command: x, severity: fatal}}]": `"fatal" is not one of error, warning, info`,
		"type: review, reviewers: [{plugin: command, with: {command: ' '}}]":                `3:39: there is no command to run`,
		"type: review, reviewers: [command]":                                                `3:39: there is no command to run`,
		"type: review, reviewers: [{plugin: agent, with: {mdoel: haiku}}]":                  `3:69: agent has no option "mdoel" (did you mean "model"?)`,
		"type: agent-loop, reviewers: [agent], arbiter: {plugin: agent, with: {modle: x}}":  `agent has no option "modle" (did you mean "model"?)`,
		"type: agent-loop, reviewers: [agent], arbiter: {plugin: rules, with: {model: x}}":  `rules has no option "model"`,
		"type: review, reviewers: [agent], arbiter: rules":                                  `unknown key "arbiter"`,
		"type: review, reviewers: [agent], workdir: x":                                      `unknown key "workdir"`,
		"type: agent-loop": `3:3: the step "a" has no reviewers (reviewers: [agent])`,
		"type: agent-loop, reviewers: [agent], arbiter: {name: x}":                                                                      `3:60: a reviewer or arbiter of step "a" has no plugin (plugin: agent)`,
		"type: agent-loop, reviewers: [agent], arbiter: [rules]":                                                                        `this must be text, not a list`,
		"type: agent-loop, reviewers: [agent], arbiter: Rules":                                                                          `"Rules" cannot be the name of a plugin`,
		"type: agent-loop, reviewers: [agent], max_iterations: 0":                                                                       `3:67: max_iterations must be 1 to 100`,
		"type: agent-loop, reviewers: [agent], max_iterations: 101":                                                                     `3:67: max_iterations must be 1 to 100`,
		"type: agent-loop, reviewers: [agent], patience: 0":                                                                             `3:61: patience must be 1 to 100`,
		"type: agent-loop, reviewers: [agent], on_max_iterations: stop":                                                                 `3:70: "stop" is not one of block, continue, fail, exit`,
		"type: agent-loop, reviewers: [agent], steps: [{name: l, type: merge}]":                                                         `a merge step cannot be inside a loop (put it after the loop)`,
		"type: agent-loop, reviewers: [agent], steps: [{name: b, type: script, command: x, on_success: exit_loop}]":                     `a step cannot exit "a": only its reviewers end an agent-loop (put the step into a loop)`,
		"type: agent-loop, reviewers: [agent], steps: [{name: b, type: script, command: x}, {name: arbiter, type: script, command: x}]": `3:96: each round of "a" already has a part named "arbiter" (give the step another name)`,
	} {
		_, err := Parse("f.yaml", []byte(one("name: a, "+step)))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.yaml:3:") {
			t.Errorf("%s\ngot  %v\nwant %s", step, err, want)
		}
	}
}

// Errors in the prompts of judges and fixing agents are found with the library.
func TestReviewPrompts(t *testing.T) {
	l, _ := files(t, nil)
	for step, want := range map[string]string{
		`type: review, reviewers: [{plugin: agent, prompt: "Look\n{{.nope}}"}]`:                `nope`,
		`type: review, reviewers: [{plugin: style, prompt: reveiw}]`:                           `unknown prompt 'reveiw' (did you mean 'review'?)`,
		`type: agent-loop, reviewers: [agent], arbiter: {plugin: agent, prompt: is-actonable}`: `unknown prompt 'is-actonable' (did you mean 'is-actionable'?)`,
		`type: agent-loop, reviewers: [agent], fix: "Fix\n{{.input.nope}}"`:                    `there is no input "nope"`,
		`type: agent-loop, reviewers: [agent], fix: aply-review`:                               `unknown prompt 'aply-review' (did you mean 'apply-review'?)`,
	} {
		all, err := l.ValidateFile("x/g.yaml", []byte(one("name: a, "+step)))
		if err != nil || len(all) != 1 || len(all[0].Problems) != 1 || all[0].Problems[0].Line != 3 || !strings.Contains(all[0].Problems[0].Error.Error(), want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %s", step, all, err, want)
		}
	}
}

// Tests the plugins that a file names and their positions. Default plugins are not listed.
func TestUses(t *testing.T) {
	l, _ := files(t, nil)
	all, err := l.ValidateFile("x/judged.yaml", []byte(judgedFile+"- {name: last, type: agent, prompt: task, provider: codex}\n"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	var got []string
	for _, u := range all[0].Plugins {
		got = append(got, fmt.Sprintf("%s %s %d:%d", u.Kind, u.Name, u.Line, u.Column))
	}
	want := "reviewer agent 12:15, reviewer command 12:31, reviewer agent 18:14, reviewer style 19:5, arbiter agent 20:21, reviewer agent 27:47, provider codex 29:53"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
}

func TestDrawReview(t *testing.T) {
	g, err := Parse("f.yaml", []byte(judgedFile))
	if err != nil {
		t.Fatal(err)
	}
	want := `/:start start: 
/make script: script, ls, 5m at most
/look review: review by agent and vet, 3m at most, 5 turns at most
/quality agent-loop: agent-loop, review by sharp and style, arbiter agent, fixed with a prompt of its own, at most 5 rounds
quality/check script: script, echo {{.seen}}, 5m at most
quality/quality/review review: review by sharp and style
quality/quality/arbiter arbiter: arbiter agent
quality/quality/fix agent: agent, a prompt of its own
/short agent-loop: agent-loop, review by agent, arbiter rules, fixed with prompt apply-review, at most 3 rounds
short/short/review review: review by agent
short/short/arbiter arbiter: arbiter rules
short/short/fix agent: agent, prompt apply-review
/land merge: merge, squash, after a review
/:completed end: 
/:blocked end: 
/:failed end: 
`
	if got := nodeTexts(g.Graph()); got != want {
		t.Errorf("got\n%s", got)
	}
	var edges []string
	for _, e := range g.Graph().Edges {
		if strings.HasPrefix(e.From, "quality") || strings.HasPrefix(e.To, "quality") || e.From == "check" {
			edges = append(edges, fmt.Sprintf("%s > %s (%s)", e.From, e.To, e.Label))
		}
	}
	if got := strings.Join(edges, "\n"); got != `look > quality (when {{.look.failed}})
look > quality (fails again, when {{.look.failed}})
quality > check (round)
check > quality/review ()
check > :blocked (fails)
quality/review > short (pass)
quality/review > quality/arbiter (fail)
quality/arbiter > short (not worth another round)
quality/arbiter > quality/fix (go on)
quality/fix > quality ()
quality/arbiter > :failed (go on after 5 rounds, or 2 rounds without fewer findings)
quality > short (fails)` {
		t.Errorf("got\n%s", got)
	}
}

// A grimoire does not change when written as YAML and read, or frozen and read.
func TestReviewRoundTrip(t *testing.T) {
	g, err := Parse("f.yaml", []byte(judgedFile))
	if err != nil {
		t.Fatal(err)
	}
	throughYAML(t, g)
	p, err := NewLibrary(t.TempDir(), "").Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	again(t, p)
	for _, name := range []string{ReviewPrompt, ArbiterPrompt, FixPrompt, "task"} {
		if p.Prompts[name].Text == "" {
			t.Errorf("the plan has no prompt %s", name)
		}
	}
}
