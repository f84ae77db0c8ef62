package grimoires

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/text/tmpl"
)

// A missing parameter of an included prompt is found in the prompt's file before a run. The shape of a
// given parameter is known there.
func TestIncludeParametersAreChecked(t *testing.T) {
	step := func(prompt string) string {
		return "name: NAME\nsteps:\n- {name: look, type: script, command: ls, output: seen}\n- name: s\n  type: agent\n  input: {x: y}\n  prompt: |\n    go\n    " + prompt + "\n"
	}
	all := map[string]string{
		"repo/.coven/spells/greet.md":    "# {{.who}}\n{{.parent.task.title}} {{.task.id}} {{.input.x}}",
		"repo/.coven/prompts/deep.md":    "{{.t.title}}\n  {{.t.titel}}",
		"repo/.coven/prompts/through.md": "{{include \"greet\" who=.name}}",
		"repo/.coven/prompts/steps.md":   "{{.from.outputs.x}}{{.from.nope}}",
		"repo/.coven/prompts/flat.md":    "{{.v.outputs.x}}",
		"repo/.coven/prompts/up.md":      "{{.parent.parent.who}}",
	}
	cases := map[string]struct{ prompt, want string }{
		"good":     {`{{include "greet" who="you"}}{{include "greet.md" "who" .task.title}}{{include "through" name=.seen}}`, ""},
		"missing":  {`{{include "greet"}}`, `.coven/spells/greet.md:1:5: there is no "who", in the step "s" of the grimoire "missing" (known: `},
		"passed":   {`{{include "through"}}`, `.coven/prompts/through.md:1:23: there is no "name", in the step "s" of the grimoire "passed"`},
		"value":    {`{{include "greet" who=.tsk.id}}`, `.coven/grimoires/value.yaml:9:27: there is no "tsk" (did you mean "task"?)`},
		"known":    {`{{include "deep" t=.task}}`, `.coven/prompts/deep.md:2:7: .t has no "titel", in the step "s" of the grimoire "known" (did you mean "title"?)`},
		"results":  {`{{include "steps" from=.look}}`, `.coven/prompts/steps.md:1:27: .from has no "nope"`},
		"flat":     {`{{include "flat" v=.seen}}`, `.coven/prompts/flat.md:1:5: .v has no parts`},
		"text":     {`{{include "flat" v="text"}}`, `.coven/prompts/flat.md:1:5: .v has no parts`},
		"open":     {`{{include "deep" t=(index .look.outputs "x")}}`, ""},
		"reserved": {`{{include "greet" who="x" task="y"}}`, `.coven/grimoires/reserved.yaml:9:31: the parameter "task" hides a name that templates already have (give it another name)`},
		"step":     {`{{include "greet" who="x" look="y"}}`, `.coven/grimoires/step.yaml:9:31: the parameter "look" hides the step of the same name (give it another name)`},
		"output":   {`{{include "greet" who="x" seen="y"}}`, `.coven/grimoires/output.yaml:9:31: the parameter "seen" hides a name that templates already have`},
		"parent":   {`{{.parent.task.id}}`, `.coven/grimoires/parent.yaml:9:7: there is no "parent"`},
		"up":       {`{{include "up" who="x"}}`, `.coven/prompts/up.md:1:10: .parent has no "parent"`},
	}
	for name, c := range cases {
		all["repo/.coven/grimoires/"+name+".yaml"] = strings.Replace(step(c.prompt), "NAME", name, 1)
	}
	l, _ := files(t, all)
	for name, c := range cases {
		_, err := l.Load(name)
		if got := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", name, err, c.want)
		}
	}
}

// Includes that nest too deep, or that multiply, are found without walking all of them.
func TestIncludesAreBounded(t *testing.T) {
	all := map[string]string{
		"repo/.coven/grimoires/deep.yaml": "name: deep\nsteps: [{name: a, type: agent, prompt: d0}]\n",
		"repo/.coven/grimoires/wide.yaml": "name: wide\nsteps: [{name: a, type: agent, prompt: w0}]\n",
		"repo/.coven/prompts/w9.md":       "end",
	}
	for i := range tmpl.MaxDepth + 2 {
		all[fmt.Sprintf("repo/.coven/prompts/d%d.md", i)] = fmt.Sprintf(`{{include "d%d"}}`, i+1)
	}
	for i := range 9 {
		all[fmt.Sprintf("repo/.coven/prompts/w%d.md", i)] = strings.Repeat(fmt.Sprintf("{{include `w%d`}}\n", i+1), 20)
	}
	l, _ := files(t, all)
	for name, want := range map[string]string{
		"deep": `.coven/prompts/d10.md:1:11: includes nest deeper than 10`,
		"wide": `the prompt of the step "a" includes more than 1000 others`,
	} {
		if _, err := l.Load(name); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name that exists in both directories of prompts is rejected.
func TestSpells(t *testing.T) {
	l, _ := files(t, map[string]string{
		"repo/.coven/spells/old.md": "old", "repo/.coven/spells/both.md": "a", "repo/.coven/prompts/both.md": "b",
		"repo/.coven/spells/task.md": "ours", "user/spells/mine.md": "m",
	})
	for name, want := range map[string]string{
		"old": "old", "mine": "m", "task": "ours",
		"both": ".coven/spells/both.md:1:1: .coven/prompts/both.md has the same name (keep one)",
	} {
		p, err := l.Prompt(name)
		got := p.Text
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	names, err := l.PromptNames()
	if err != nil || strings.Count(strings.Join(names, " "), "both") != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

// original 3c 6 and 18: conditions that can be neither true nor false are errors when the file is read; the
// parts of an output are known.
func TestConditionsAndOutputs(t *testing.T) {
	for when, want := range map[string]string{
		"{{.seen}}": "", "{{.seen.success}}": "", "{{.seen.outputs.ready}}": "", "{{.previous.failed}}": "", "{{not .look.success}}": "",
		"{{.look.output}}":        "",
		"{{.ask}}":                "",
		"{{.look.exit_code}}":     `5:36: when must evaluate to true or false, and .look.exit_code is a number (compare it: {{eq .look.exit_code 0}})`,
		" {{ .artifacts.files }}": `5:38: when must evaluate to true or false, and .artifacts.files is a list (compare it: {{gt (len .artifacts.files) 0}})`,
		"{{.task.title}}":         `5:36: when must evaluate to true or false, and .task.title is text (compare it: {{ne .task.title ""}})`,
		"{{.look}}":               `5:36: when must evaluate to true or false, and .look is a map (name one of its parts: commit, error, `,
		"{{.seen.succes}}":        `5:41: .seen has no "succes" (did you mean "success"?)`,
		"{{.seen.outputs.a.b}}":   "",
		"0 failures":              `5:33: when must evaluate to true or false, not "0 failures"`,
	} {
		text := "name: g\nsteps:\n- {name: look, type: script, command: ls, output: seen}\n- {name: ask, type: agent, prompt: default, output: ask}\n- {name: b, type: script, when: '" + "W', command: 'echo {{.ask}} {{.ask.outputs.url}} {{.steps.ask.summary}}'}\n"
		text = strings.Replace(text, "W", when, 1)
		_, err := Parse("f.yaml", []byte(text))
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, strings.Replace(want, "5:", "f.yaml:5:", 1)) {
			t.Errorf("%s: got %v", when, err)
		}
	}
}
