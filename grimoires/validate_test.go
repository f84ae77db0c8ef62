package grimoires

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lines lists the problems, one per line.
func lines(all []Checked) string {
	var out []string
	for _, c := range all {
		for _, p := range c.Problems {
			word := "error"
			if p.Warning {
				word = "warning"
			}
			out = append(out, fmt.Sprintf("%s %s %s", c.Kind, word, p.Error.Error()))
		}
		if len(c.Problems) == 0 {
			out = append(out, fmt.Sprintf("%s %s is fine", c.Kind, c.File))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n") + "\n"
}

// Everything that a run could read is checked, and each error is reported once, for its own file.
func TestValidate(t *testing.T) {
	l, _ := files(t, map[string]string{
		"repo/.coven/grimoires/good.yaml":       named("good"),
		"repo/.coven/grimoires/bad.yaml":        "name: bad\nsteps:\n- {name: a, type: agent, prompt: shared, nope: 1}\n- {name: b, type: agent, prompt: gone}\n",
		"repo/.coven/grimoires/syntax.yaml":     "name: [",
		"repo/.coven/grimoires/uses.yaml":       "name: uses\nsteps:\n- {name: a, type: agent, prompt: shared, input: {x: y}}\n",
		"repo/.coven/grimoires/not a name.yaml": "x",
		"repo/.coven/grimoires/good.test.yaml":  "x",
		"repo/.coven/grimoires/twice.yml":       named("twice"),
		"repo/.coven/grimoires/twice.yaml":      named("twice"),
		"repo/.coven/prompts/shared.md":         "{{.input.x}}{{.task.titel}}",
		"repo/.coven/prompts/alone.md":          "{{.steps.any.output}}{{.whatever.x}}{{.input.y}}{{include `task`}}",
		"repo/.coven/prompts/alone-bad.md":      "{{.bead.titel}} {{.previous.faild}} {{.loop.nr}}{{include `tsk`}}",
		"repo/.coven/prompts/broken.md":         "a\n{{if}}",
		"repo/.coven/grimoire-matchers.yaml":    "default: god\n",
		"repo/.coven/grimoire-mapping.json":     "{}",
		"repo/.coven/config.json":               "{}",
		"user/prompts/text.md":                  "a\xff",
	})
	all, err := l.Validate()
	if err != nil {
		t.Fatal(err)
	}
	got := lines(all)
	for _, want := range []string{
		`grimoire .coven/grimoires/good.yaml is fine`,
		`grimoire implement.yaml (built in) is fine`,
		`prompt prompts/implement.md (built in) is fine`,
		`prompt .coven/prompts/alone.md is fine`,
		`grimoire error .coven/grimoires/bad.yaml:3:42: unknown key "nope"`,
		`grimoire error .coven/grimoires/bad.yaml:4:34: grimoire 'bad' step 'b': unknown prompt 'gone'`,
		`grimoire error .coven/grimoires/syntax.yaml:1:1: this is not YAML`,
		`file error .coven/grimoires/twice.yml:1:1: .coven/grimoires/twice.yaml has the same name (keep one)`,
		`file warning .coven/grimoires/not a name.yaml:1:1: no grimoire can have this name`,
		`prompt error .coven/prompts/shared.md:1:9: there is no input "x", in the step "a" of the grimoire "bad"`,
		`prompt error .coven/prompts/shared.md:1:20: .task has no "titel", in the step "a" of the grimoire "uses" (did you mean "title"?)`,
		`prompt error .coven/prompts/alone-bad.md:1:8: .bead has no "titel" (did you mean "title"?)`,
		`prompt error .coven/prompts/alone-bad.md:1:28: .previous has no "faild" (did you mean "failed"?)`,
		`prompt error .coven/prompts/alone-bad.md:1:44: .loop has no "nr"`,
		`prompt error .coven/prompts/alone-bad.md:1:59: unknown prompt 'tsk' (did you mean 'task'?)`,
		`prompt error .coven/prompts/broken.md:2:1: missing value for if`,
		`matchers error .coven/grimoire-matchers.yaml:1:10: unknown grimoire "god" (did you mean "good"?)`,
		`file warning .coven/grimoire-mapping.json:1:1: coven does not read this file (it reads .coven/grimoire-matchers.yaml)`,
		`file error .coven/config.json:1:1: coven does not read this file (write .coven/config.yaml: `,
		`text.md:1:1: the prompt is not UTF-8 text`,
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%d times %s", strings.Count(got, want), want)
		}
	}
	if strings.Contains(got, "good.test.yaml") {
		t.Error("tests of a grimoire are not one")
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestValidateOne(t *testing.T) {
	l, dir := files(t, map[string]string{
		"repo/.coven/grimoires/good.yaml": named("good"),
		"repo/.coven/prompts/mine.md":     "{{.input.x}}",
		"repo/.coven/prompts/bad.md":      "{{if}}",
		"else/any.yaml":                   "name: other\nsteps: [{name: a, type: agent, prompt: mine}]\n",
		"else/p.md":                       "{{.task.nope}}",
		"else/grimoire-matchers.yaml":     "default: good\nrules: [{}]\n",
	})
	for name, want := range map[string]string{
		"good": "grimoire .coven/grimoires/good.yaml is fine\nprompt prompts/default.md (built in) is fine\nprompt prompts/task.md (built in) is fine\n",
		"mine": "prompt .coven/prompts/mine.md is fine\n",
		"bad":  "prompt error .coven/prompts/bad.md:1:1: missing value for if\n",
	} {
		if all, err := l.ValidateName(name); err != nil || lines(all) != want {
			t.Errorf("%s: %s, %v", name, lines(all), err)
		}
	}
	if _, err := l.ValidateName("god"); err == nil || err.Error() != `unknown grimoire "god" (did you mean "good"?)` {
		t.Errorf("unknown: %v", err)
	}
	for name, wants := range map[string][]string{
		"any.yaml":               {`any.yaml:1:7: grimoire name "other" does not match file name "any"`, `.coven/prompts/mine.md:1:9: there is no input "x"`},
		"p.md":                   {`p.md:1:8: .task has no "nope"`},
		"grimoire-matchers.yaml": {`a rule has no name`, `a rule has no grimoire`},
	} {
		data, err := os.ReadFile(filepath.Join(dir, "else", name))
		if err != nil {
			t.Fatal(err)
		}
		all, err := l.ValidateFile(name, data)
		for _, want := range wants {
			if err != nil || !strings.Contains(lines(all), want) {
				t.Errorf("%s: %s, %v", name, lines(all), err)
			}
		}
	}
}
