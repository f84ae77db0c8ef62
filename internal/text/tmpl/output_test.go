package tmpl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// An output prints as its text and has the parts of the step's result. Functions treat
// it as a text.
func TestOutput(t *testing.T) {
	data := map[string]any{
		"v":     Output{"it's {{.x}}", map[string]any{"success": true, "outputs": map[string]any{"pr-url": "http://x"}}},
		"empty": Output{},
	}
	for text, want := range map[string]string{
		`{{.v}}`:                                `it's {{.x}}`,
		`{{.v.success}} {{.v.outputs.pr-url}}`:  `true http://x`,
		`{{$.v.outputs}}`:                       `{"pr-url":"http://x"}`,
		`{{upper .v}}{{len .v}}`:                `IT'S {{.X}}11`,
		`{{json .v}}{{quote .v}}`:               `"it's {{.x}}""it's {{.x}}"`,
		`{{if eq .v "x"}}same{{else}}no{{end}}`: `no`,
		`{{default "d" .empty}}`:                `d`,
		`{{if .empty}}yes{{end}}`:               ``,
		`{{printf "%s|" .v}}`:                   `it's {{.x}}|`,
		`{{$x := .v}}{{$x}}`:                    `it's {{.x}}`,
		`{{index . "v"}}{{json .}}`:             `it's {{.x}}{"empty":"","v":"it's {{.x}}"}`,
		`{{default "d" (index . "empty")}}`:     `d`,
		`{{.v.outputs.nope}}`:                   `f:1:13: .v.outputs has no "nope" (known: pr-url)`,
		`{{.v.succes}}`:                         `f:1:5: .v has no "succes" (did you mean "success"?)`,
		`{{range .v}}{{end}}`:                   `f:1:9: range goes over a list or a map, not text`,
		`{{.empty.x}}`:                          `f:1:9: .empty has no "x"`,
	} {
		got, err := Text("f", text, data)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	if got, err := Command("c", "echo {{.v}}", data); err != nil || got != `echo 'it'\''s {{.x}}'` {
		t.Errorf("command: %s, %v", got, err)
	}
	if got := fmt.Sprint(data["v"]); got != "it's {{.x}}" {
		t.Errorf("String: %s", got)
	}
}

// original 3c 18: The functions, with arguments in the original's
// order: default DEFAULT VALUE, join SEPARATOR LIST, indent SPACES TEXT. Their
// results are never interpreted as templates.
func TestFunctionsOfTheOriginal(t *testing.T) {
	data := map[string]any{"hole": "{{.secret}}", "list": []string{"{{.secret}}", "b"}, "empty": "", "secret": "S", "two": "a\nb"}
	for text, want := range map[string]string{
		`{{default "{{.secret}}" .empty}}`:     `{{.secret}}`,
		`{{.empty | default .hole}}`:           `{{.secret}}`,
		`{{default "no" .hole}}`:               `{{.secret}}`,
		`{{join "{{.secret}}" .list}}`:         `{{.secret}}{{.secret}}b`,
		`{{.list | join "+"}}`:                 `{{.secret}}+b`,
		`{{upper .hole}}{{.hole | lower}}`:     `{{.SECRET}}{{.secret}}`,
		`{{trim (print " " .hole " ")}}`:       `{{.secret}}`,
		`{{indent 2 .two}}{{.two | indent 1}}`: "  a\n  b a\n b",
		`{{quote .hole}}`:                      `"{{.secret}}"`,
		`{{json .list}}`:                       `["{{.secret}}","b"]`,
		`{{raw .hole}}`:                        `{{.secret}}`,
		`{{printf "%s" .hole}}`:                `{{.secret}}`,
	} {
		if got, err := Text("f", text, data); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		`a {{.hole}} {{raw .hole}} {{quote .hole}}`: `a '{{.secret}}' {{.secret}} '{{.secret}}'`,
		`a {{default .hole .empty}}`:                `a '{{.secret}}'`,
	} {
		if got, err := Command("f", text, data); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
	lookup := func(string) (string, string, bool) { return "i.md", "{{.hole}}{{.key}}", true }
	if got, err := Prompt("f", `{{include "i" key=.hole}}`, data, lookup, nil); err != nil || got != "{{.secret}}{{.secret}}" {
		t.Errorf("include: got %q, %v", got, err)
	}
}

// original 3c 18: A missing name is an error in all templates except
// prompts, even as the argument of default, and a
// condition must be true or false.
func TestMissingAndConditions(t *testing.T) {
	data := map[string]any{"tests": Output{Text: "0 failures"}, "step": map[string]any{}}
	for _, text := range []string{"{{.nope}}", `{{default "d" .nope}}`, "{{if .nope}}{{end}}", "{{.step.nope}}", "{{not .nope}}", `{{index .step.nope "x"}}`} {
		_, errText := Text("f", text, data)
		_, errCommand := Command("f", text, data)
		_, errBool := Bool("f", text, data)
		for kind, err := range map[string]error{"text": errText, "command": errCommand, "bool": errBool} {
			if err == nil || !containsAll(err.Error(), "f:1:", `has no "nope"`) {
				t.Errorf("%s as %s: %v", text, kind, err)
			}
		}
	}
	for _, text := range []string{"{{.tests}}", "0", "1", "yes", "", "{{.step}}", "<no value>"} {
		if got, err := Bool("f", text, data); err == nil || !containsAll(err.Error(), "must evaluate to true or false") {
			t.Errorf("%q became %v, %v", text, got, err)
		}
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// A prompt may test a name that does not exist, as documented by the original. All other
// names must exist.
func TestOptionalNames(t *testing.T) {
	data := map[string]any{"step": map[string]any{"outputs": map[string]any{}, "output": "out"}, "none": nil}
	lookup := func(string) (string, string, bool) { return "i.md", "{{if .inner}}{{.inner}}{{else}}-{{end}}", true }
	for text, want := range map[string]string{
		"{{if .maybe}}{{.maybe}}{{else}}no{{end}}":                             "no",
		"{{if not .maybe}}no{{end}}{{.maybe}}":                                 "no",
		"{{with .maybe}}{{.}}{{else}}no{{end}}":                                "no",
		"{{- if $.maybe -}}{{$.maybe}}{{- end -}}":                             "",
		"{{if and .maybe (gt (len .maybe) 0)}}{{range .maybe}}{{end}}{{end}}":  "",
		"{{if or .maybe .step.output}}yes{{end}}":                              "yes",
		"{{if .given}}{{.given}}{{end}}{{.given}}":                             "GG",
		`{{default "none" .maybe}}{{.maybe | default "x"}}`:                    "nonex",
		`{{.maybe | default "x"}}{{.maybe | default "y" | upper}}`:             "xY",
		`{{default "none" .step.outputs.key}}`:                                 "none",
		`{{.step.outputs.key | default "none"}}`:                               "none",
		"{{if .step.outputs.key}}{{.step.outputs.key}}{{end}}":                 "",
		"{{if .step.output}}{{if .other}}{{end}}{{.step.output}}{{end}}":       "out",
		`{{include "i"}}{{include "i" inner="x"}}{{include "i" given="mine"}}`: "-x-",
	} {
		got, err := Prompt("f", text, data, lookup, map[string]any{"given": "G", "step": "hidden"})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"{{.maybe}}", "{{if .a}}{{end}}{{.maybe}}", "{{if eq .maybe 1}}{{end}}", "{{.step.outputs.key}}", "{{range .maybe}}{{end}}",
		"{{if .maybe.part}}{{end}}{{.maybe.other}}", "{{if .step.outputs.key}}{{.step.outputs.other}}{{else}}{{.step.outputs.other}}{{end}}",
	} {
		if got, err := Prompt("f", text, data, lookup, nil); err == nil || !strings.Contains(err.Error(), "has no ") {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
}
