package tmpl

import (
	"fmt"
	"strings"
	"testing"
)

func prompts(files map[string]string) Lookup {
	return func(name string) (string, string, bool) { text, ok := files[name]; return name + ".md", text, ok }
}

// Both notations for parameters, their possible values, and the data of an included
// prompt.
func TestIncludeParameters(t *testing.T) {
	lookup := prompts(map[string]string{
		"one":   `<{{.key}}>`,
		"name":  `<{{.a-b}}{{.task.id}}>`,
		"title": `{{.t.title}}/{{.t.id}}`,
		"up":    `{{.parent.task.id}}{{.parent.parent.task.id}}{{.key}}{{.parent.key}}`,
		"mid":   `{{include "up" key="inner"}}`,
		"on":    `{{include "one" key=.key}}{{include "one"}}`,
		"each":  `{{range .list}}{{include "one" key=.}}{{end}}`,
		"gone":  "\n {{.kee}}",
		"plain": `{{.parent.nope}}`,
	})
	for text, want := range map[string]string{
		`{{include "one.md" key="v"}}`:                          `<v>`,
		`{{include "one" "key" "v"}}`:                           `<v>`,
		`{{- include "one.md" key=.task.id -}} x`:               `<t-1>x`,
		`{{include "one" key=$.task.id}}`:                       `<t-1>`,
		`{{include "one" "key" .loop.iteration}}`:               `<2>`,
		`{{include "one" key=(.task.id | upper)}}`:              `<T-1>`,
		`{{include "one" key=(print "=" .task.id)}}`:            `<=t-1>`,
		`{{include "one" key=.task.title}}`:                     `<A {{.task.id}} title>`,
		`{{include "one" key="{{.task.id}}"}}`:                  `<{{.task.id}}>`,
		"{{include `one` key=`a=b c=\"d\"`}}":                   `<a=b c="d">`,
		`{{include "one" key=3 | upper}}{{"key=v"}} key=v`:      `<3>key=v key=v`,
		`{{include "one" key=nil}}`:                             `<>`,
		"{{include \"name\"\n a-b=.run-tests.outputs.pr-url}}":  `<http://xt-1>`,
		`{{include "title" t=.task}}`:                           `A {{.task.id}} title/t-1`,
		`{{include "title" "t" .task}}`:                         `A {{.task.id}} title/t-1`,
		`{{include "mid" key="outer"}}`:                         `t-1t-1innerouter`,
		`{{include "on" key=true}}`:                             `<true><true>`,
		`{{include "each" list=.task.labels}}`:                  `<x><y>`,
		`{{include "one" key=.task.nope}}`:                      `p.md:1:26: .task has no "nope" (known: empty, id, labels, nothing, title, unset)`,
		"a\n {{include \"one\" key=.task.nope}}":                `p.md:2:27: .task has no "nope" (known: empty, id, labels, nothing, title, unset)`,
		`{{include "gone" key="v"}}`:                            `gone.md:2:4: the data has no "kee" (did you mean "key"?)`,
		`{{include "plain"}}`:                                   `plain.md:1:10: .parent has no "nope" (known: input, loop, run-tests, steps, task)`,
		`{{include "one" task="x"}}`:                            `p.md:1:3: include: the parameter "task" hides a name that templates already have`,
		`{{include "one" run-tests="x"}}`:                       `p.md:1:3: include: the parameter "run-tests" hides a name that templates already have`,
		`{{include "one" parent="x"}}`:                          `p.md:1:17: the parameter name parent is reserved: it holds the data of the including prompt`,
		`{{include "one" key="v" key="w"}}`:                     `p.md:1:25: the parameter "key" is given twice`,
		`{{include "one" key}}`:                                 `p.md:1: unknown function "key"`,
		`{{include "one" "key"}}`:                               `p.md:1:17: the parameter "key" has no value ({{include "name" key="text" other=.task.title}})`,
		`{{include "one" key= other="v"}}`:                      `p.md:1:17: the parameter "key" has no value ({{include "name" key="text" other=.task.title}})`,
		`{{include "one" .task.id "v"}}`:                        `p.md:1:17: include takes the name of one prompt, in quotes, and parameters ({{include "name" key="text" other=.task.title}})`,
		`{{include "one" "a b" "v"}}`:                           `p.md:1:17: "a b" cannot be the name of a parameter (letters, digits, - and _, the first a letter)`,
		`{{include "one" "a.b" "v"}}`:                           `p.md:1:17: "a.b" cannot be the name of a parameter (letters, digits, - and _, the first a letter)`,
		`{{include "one" "" "v"}}`:                              `p.md:1:17: "" cannot be the name of a parameter (letters, digits, - and _, the first a letter)`,
		`{{.task.id | include "one" "key"}}`:                    `p.md:1:14: include takes the name of one prompt, in quotes, and parameters ({{include "name" key="text" other=.task.title}})`,
		`{{upper key="v"}}`:                                     `p.md:1:9: key= does not work here (only include takes parameters: {{include "name" key="text" other=.task.title}})`,
		`{{if .task.id=="x"}}{{end}}`:                           `p.md:1: bad character U+003D '='`,
		`{{include "nope" key="v"}}`:                            `p.md:1:3: include: unknown prompt "nope"`,
		"{{include \"one\"\n  key=.task.id\n  other=.nope.x}}":  `p.md:3:9: the data has no "nope" (known: input, loop, run-tests, steps, task)`,
		"𐐀{{include \"one\" kéy-ö=.task.id b=.task.nope.deep}}": `p.md:1:40: .task has no "nope" (known: empty, id, labels, nothing, title, unset)`,
	} {
		got, err := Prompt("p.md", text, sample(), lookup, nil)
		if err != nil {
			got = strings.Replace(err.Error(), "include: unknown", "unknown", 1)
			want = strings.Replace(want, "include: unknown", "unknown", 1)
			got = strings.Replace(got, "include: the", "the", 1)
			want = strings.Replace(want, "include: the", "the", 1)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// The depth and the number of includes are limited.
func TestIncludeBounds(t *testing.T) {
	files := map[string]string{"wide": strings.Repeat(`{{include "leaf"}}`, 40), "wider": strings.Repeat(`{{include "wide"}}`, 40), "leaf": "x"}
	for i := range MaxDepth + 1 {
		files[fmt.Sprintf("d%d", i)] = fmt.Sprintf(`{{include "d%d"}}`, i+1)
	}
	files[fmt.Sprintf("d%d", MaxDepth)] = "end"
	for text, want := range map[string]string{
		`{{include "d1"}}`:   "end",
		`{{include "d0"}}`:   "d9.md:1:3: includes nest deeper than 10",
		`{{include "wide"}}`: strings.Repeat("x", 40),
	} {
		got, err := Prompt("p.md", text, nil, prompts(files), nil)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
	if _, err := Prompt("p.md", `{{include "wider"}}`, nil, prompts(files), nil); err == nil || !strings.Contains(err.Error(), "more than 1000 others") {
		t.Errorf("1640 includes: %v", err)
	}
}

func TestUsesOfIncludes(t *testing.T) {
	uses, err := CheckPrompt("p", "\n{{include \"a\" x=.task.title y-z=\"t\" \"n\" 1 v=$.loop w=(.b | upper)}}{{range .l}}{{include \"b\" e=.f}}{{end}}")
	if err != nil {
		t.Fatal(err)
	}
	want := `a 2:11 x 2:15 [task title] false; y-z 2:29 [] true; n 2:37 [] true; v 2:43 [loop] false; w 2:52 [] false; | b 2:90 e 2:94 [] false; | `
	got := ""
	for _, in := range uses.Includes {
		got += fmt.Sprintf("%s %d:%d ", in.Path[0], in.Line, in.Column)
		for _, p := range in.Params {
			got += fmt.Sprintf("%s %d:%d %v %v; ", p.Name, p.Line, p.Column, p.Value, p.Text)
		}
		got += "| "
	}
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for text, want := range map[string]string{
		"{{.a.b-c}}": "a.b-c", " {{ .previous.failed -}}\n": "previous.failed", "{{not .a}}": "", "x{{.a}}": "", "{{.a}}{{.b}}": "",
		"{{if .a}}{{.b}}{{end}}": "", "{{$x := .a}}": "", "{{.a | not}}": "", "true": "",
	} {
		uses, err := CheckText("p", text)
		got := ""
		if err == nil && uses.Sole != nil {
			got = strings.Join(uses.Sole.Path, ".")
		}
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}
