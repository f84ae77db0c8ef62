package tmpl

import (
	"errors"
	"strings"
	"testing"
	"text/template"
)

func sample() map[string]any {
	result := map[string]any{
		"output": "two\nlines", "failed": true, "exit_code": 1,
		"outputs": map[string]any{"pr-url": "http://x", "n": 3.0, "big": 1e6, "none": nil, "list": []any{"a", 1.0}},
	}
	return map[string]any{
		"task":      map[string]any{"id": "t-1", "title": "A {{.task.id}} title", "labels": []string{"x", "y"}, "empty": "", "nothing": []string{}, "unset": []string(nil)},
		"steps":     map[string]any{"run-tests": result, "run_tests": map[string]any{"output": "under"}, "2nd-try": result, "a--b": result},
		"run-tests": result,
		"loop":      map[string]any{"iteration": 2},
		"input":     map[string]any(nil),
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain - text":                                                         "plain - text",
		"{{.steps.run-tests.output}}":                                          "two\nlines",
		"{{.run-tests.output}}":                                                "two\nlines",
		"{{$.run-tests.outputs.pr-url}}":                                       "http://x",
		"{{.steps.run_tests.output}}":                                          "under",
		"{{.steps.2nd-try.exit_code}}":                                         "1",
		"{{.steps.a--b.exit_code}}":                                            "1",
		"{{(index .steps `run-tests`).exit_code}}":                             "1",
		"{{.task.title}}":                                                      "A {{.task.id}} title",
		"a {{- .task.id -}} b":                                                 "at-1b",
		"{{- /* .run-tests }} \" */ -}} x":                                     "x",
		"{{/* it's */}}{{.task.id}}":                                           "t-1",
		`{{"}}.a-b"}}{{print ".a-b"}}`:                                         `}}.a-b.a-b`,
		"{{`}}`}}{{'x'}}":                                                      "}}120",
		"{{with .steps.run-tests}}{{.exit_code}}{{end}}":                       "1",
		"{{$s := .steps.run-tests}}{{$s.exit_code}}":                           "1",
		"{{range .task.labels}}[{{.}}]{{end}}":                                 "[x][y]",
		"{{range $i, $l := .task.labels}}{{$i}}{{$l}}{{end}}":                  "0x1y",
		"{{range .task.labels}}{{$.task.id}}{{end}}":                           "t-1t-1",
		"{{range .task.nothing}}{{else}}none{{end}}":                           "none",
		"{{range .run-tests.outputs.none}}{{else}}none{{end}}":                 "none",
		"{{.task.labels}}":                                                     `["x","y"]`,
		"{{.run-tests.outputs.list}}":                                          `["a",1]`,
		"{{.run-tests.outputs.n}}":                                             "3",
		"{{.run-tests.outputs.big}}":                                           "1000000",
		"{{.run-tests.outputs.none}}":                                          "",
		"{{.task.unset}}{{json .input}}":                                       "[]{}",
		"{{.run-tests.failed}}":                                                "true",
		`{{index .run-tests.outputs "no" | default "d"}}`:                      "d",
		`{{default "d" .task.empty}}`:                                          "d",
		`{{default "d" .task.nothing}}`:                                        "d",
		`{{default "d" .task.id}}`:                                             "t-1",
		`{{default "d" 0}}`:                                                    "0",
		`{{join ", " .task.labels}}`:                                           "x, y",
		`{{.run-tests.outputs.none | join ","}}`:                               "",
		`{{upper .task.id}}{{lower "A"}}{{trim " a "}}`:                        "T-1aa",
		`{{indent 2 .run-tests.output}}`:                                       "  two\n  lines",
		`{{quote .run-tests.output}}`:                                          `"two\nlines"`,
		`{{json .task.labels}}{{json "<"}}`:                                    `["x","y"]"<"`,
		`{{raw .task.id}}`:                                                     "t-1",
		`{{if and .run-tests.failed (eq .loop.iteration 2)}}y{{else}}n{{end}}`: "y",
		`{{len .task.labels}}{{printf "%03d" 7}}`:                              "2007",
	} {
		if got, err := Text("f", text, sample()); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestTextErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a\n {{.task.titel}}":                    `f:2:9: .task has no "titel" (did you mean "title"?)`,
		"{{.tsk.title}}":                         `f:1:3: the data has no "tsk" (did you mean "task"?)`,
		"é{{.steps.run-tests.nope}}":             `f:1:20: .steps.run-tests has no "nope" (known: exit_code, failed, output, outputs)`,
		"{{.task.id.x}}":                         `f:1:11: .task.id is text and has no "x"`,
		"{{.run-tests.outputs.none.x}}":          `f:1:26: .run-tests.outputs.none is null and has no "x"`,
		"{{$.input.x}}":                          `f:1:10: $.input has no "x"`,
		"{{$x := .task}}{{$x.nope}}":             `f:1:20: $x has no "nope" (known: empty, id, labels, nothing, title, unset)`,
		"x\n{{if}}":                              `f:2: missing value for if`,
		"{{.task.id | uper}}":                    `f:1: unknown function "uper" (did you mean "upper"?)`,
		"{{.a-b.c-d | | .x}}":                    `f:1: unexpected "|" in command`,
		"{{env `HOME`}}":                         `f:1: unknown function "env"`,
		"{{call .x}}":                            `f:1: unknown function "call"`,
		"{{_get . 0}}":                           `f:1: unknown function "_get"`,
		"{{include `x`}}":                        `f:1:3: include works in prompts only`,
		`{{define "x"}}y{{end}}`:                 `f:1:15: define and block do not work here (put it into a prompt and {{include "name"}} it)`,
		`{{template "x"}}`:                       `f:1:12: template does not work here (put it into a prompt and {{include "name"}} it)`,
		"{{range 9999999999}}{{end}}":            `f:1:9: range goes over a list or a map, not a number`,
		"{{indent 9999 .task.id}}":               `f:1:3: indent: it takes 0 to 200 spaces`,
		`{{join .task.labels ","}}`:              `f:1:8: wrong type for value; expected string; got []string`,
		`{{join "," .task.id}}`:                  `f:1:3: join: it takes a separator and a list, not text`,
		"{{.run-tests.output | indent \"a-b\"}}": `f:1:30: expected integer; found "a-b"`,
	} {
		_, err := Text("f", text, sample())
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
		if own := (*Error)(nil); err != nil && !errors.As(err, &own) {
			t.Errorf("%s: the error is a %T", text, err)
		}
	}
}

func TestBool(t *testing.T) {
	for text, want := range map[string]string{
		"{{.run-tests.failed}}": "true", " true\n": "true", "{{not .run-tests.failed}}": "false", "false": "false",
		`{{eq .task.id "t-1"}}`: "true", `{{eq .steps.run-tests.exit_code 0}}`: "false",
		"": "error", "0": "error", "{{.task.title}}": "error", "True": "error", "{{.nope}}": "error", "truetrue": "error",
	} {
		got, err := Bool("f", text, sample())
		switch {
		case err != nil && want != "error":
			t.Errorf("%q: %v", text, err)
		case err == nil && (want == "true") != got, err == nil && want == "error":
			t.Errorf("%q: got %v, want %s", text, got, want)
		}
	}
	_, err := Bool("s when", "{{.run-tests.output}}", sample())
	if want := `s when:1:1: this must evaluate to true or false, not "two\nlines" (compare: {{eq .x "y"}})`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestPromptIncludes(t *testing.T) {
	files := map[string]string{
		"a": `{{include "b"}}{{include "c.md"}}`, "b": "[{{.task.id}}]", "c": "{{include `b`}}",
		"self": `{{include "self"}}`, "x": `{{include "y"}}`, "y": "\n{{include `x`}}", "bad": "\n  {{.task.nope}}",
	}
	lookup := func(name string) (string, string, bool) { text, ok := files[name]; return name + ".md", text, ok }
	for text, want := range map[string]string{
		`{{include "a"}}`: "[t-1][t-1]",
		`{{range .task.labels}}{{include "b" | upper}}{{end}}`: "[T-1][T-1]",
		`{{include "self"}}`:   `self.md:1:3: "self" includes itself: self -> self`,
		`{{include "x"}}`:      `y.md:2:3: "x" includes itself: x -> y -> x`,
		`{{include "none"}}`:   `p.md:1:3: unknown prompt "none"`,
		`{{include "bad"}}`:    `bad.md:2:10: .task has no "nope" (known: empty, id, labels, nothing, title, unset)`,
		`{{include .task.id}}`: `p.md:1:3: include takes the name of one prompt, in quotes, and parameters ({{include "name" key="text" other=.task.title}})`,
		`{{"a" | include}}`:    `p.md:1:9: include takes the name of one prompt, in quotes, and parameters ({{include "name" key="text" other=.task.title}})`,
	} {
		got, err := Prompt("p.md", text, sample(), lookup, nil)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestUses(t *testing.T) {
	uses, err := CheckPrompt("p", "{{.a.b-c}} {{with .d}}{{.no}}{{$.e.f}}{{end}}{{range .g}}{{.no}}{{else}}{{.h}}{{end}}\n{{include \"inc\"}}{{raw (index .i 0).x}}")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, r := range uses.Data {
		paths = append(paths, strings.Join(r.Path, "."))
	}
	if got := strings.Join(paths, " "); got != "a.b-c d e.f g h i" {
		t.Errorf("data: %s", got)
	}
	if r := uses.Includes; len(r) != 1 || r[0].Path[0] != "inc" || r[0].Line != 2 || r[0].Column != 11 {
		t.Errorf("includes: %v", r)
	}
	if r := uses.Raw; len(r) != 1 || r[0].Line != 2 || r[0].Column != 20 {
		t.Errorf("raw: %v", r)
	}
}

// For templates with names that text/template supports, errors and output match those of
// text/template.
func FuzzText(f *testing.F) {
	for _, text := range []string{
		"{{.steps.run-tests.output}}", "{{/* x */}}", "{{- `a` -}}", `{{"\"-"}}`, "{{if .a}}{{else}}{{end}}", "{{range .task.labels}}{{.}}{{end}}",
		"{{$a.b-c := 1}}", "{{.a-}}", "{{.-a}}", "{{(.a).b-c}}", `{{include "x" a-b=.c.d-e f="=" g=(.h) | upper}}`, "{{a=1}}", "{{'\\''}}", "{{ . | json }}", "{{1.5}}", "{{.2nd}}", "𐐀{{.𐐁-a}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 {
			return
		}
		out, err := Text("f", text, sample())
		if own := (*Error)(nil); err != nil && (!errors.As(err, &own) || own.Line < 1) {
			t.Fatalf("%q: %T %v", text, err, err)
		}
		if !strings.Contains(text, "{{") && out != text {
			t.Fatalf("%q became %q", text, out)
		}
		if _, parseErr := template.New("").Funcs(sameNames()).Parse(text); parseErr == nil && strings.Contains(text, "-") {
			if _, err := check("f", text, prompt); err != nil && err.(*Error).Column == 0 { //nolint:errorlint // it is ours
				t.Fatalf("%q: text/template reads it, we say %v", text, err)
			}
		}
	})
}

func sameNames() template.FuncMap {
	names := template.FuncMap{}
	for _, name := range functionNames[:10] {
		names[name] = func(...any) string { return "" }
	}
	return names
}
