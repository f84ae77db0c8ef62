// Package tmpl renders Go templates (text/template) for grimoires and prompts.
//
// Rules:
//
//   - A name in a template must exist. A missing key is an error with its line,
//     its column and a suggestion. In a prompt, a name that is tested
//     need not exist: {{if .x}}, {{with .x}}, {{default "none" .x}}. A list or map is printed as
//     JSON, and null as nothing.
//   - Names may contain hyphens: {{.steps.run-tests.output}}. (A name that ends with
//     a hyphen, or a first name that begins with a digit, needs index.)
//   - Functions: default join upper lower trim indent quote json include raw, and
//     from text/template and or not eq ne lt le gt ge len index slice print printf
//     println html js urlquery. No function reads files, the environment or a clock,
//     or runs a program. define, template and block do not work: use include.
//   - {{include "name" key="text" other=.task.title}} renders another prompt, in
//     which key and other are additional names. It is equivalent to
//     {{include "name" "key" "text" "other" .task.title}}.
//   - A value is never interpreted as a template.
//   - In a shell command (NewCommand) every value becomes one quoted word of the
//     shell. Where that cannot work (inside quotes, comments, here-documents,
//     backquotes, ...) the action is an error, which Check functions find, too.
//
// Every error is an *Error.
package tmpl

import (
	"errors"
	"fmt"
	"maps"
)

// Error is an error in a template, or in its data.
type Error struct {
	Name         string // name of the template
	Line, Column int    // starting at 1; Column is 0 if unknown
	Msg          string
	Hint         string // how to fix it; may be empty
}

// Error returns "name:line:column: msg (hint)".
func (e *Error) Error() string {
	at := fmt.Sprintf("%s:%d:", e.Name, e.Line)
	if e.Column > 0 {
		at += fmt.Sprintf("%d:", e.Column)
	}
	if e.Hint != "" {
		return at + " " + e.Msg + " (" + e.Hint + ")"
	}
	return at + " " + e.Msg
}

// Text renders a text. name is the template's name in errors.
func Text(name, text string, data map[string]any) (string, error) {
	return render(name, text, plain, data, nil)
}

// Lookup finds the file for {{include "name"}}. It returns the file's name in errors, and its text.
type Lookup func(name string) (file, text string, ok bool)

// Prompt renders a template that may include others. Included templates have the same data, the
// parameters of the include, and the data of the including template as .parent. A
// parameter may hide another parameter or an input, but no other name. Names of the data hide inputs.
func Prompt(name, text string, data map[string]any, lookup Lookup, inputs map[string]any) (string, error) {
	seen := data
	if len(inputs) > 0 {
		seen = maps.Clone(inputs)
		maps.Copy(seen, data)
	}
	return render(name, text, prompt, seen, &including{lookup: lookup, taken: data, count: new(int)})
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}

// form is the kind of text that a template renders.
type form int

const (
	plain form = iota
	prompt
	command
	variable // of an environment
)

func render(name, text string, f form, data map[string]any, in *including) (string, error) {
	return newTemplate(name, text, f).render(data, in)
}

// explain converts an error at run time to an *Error.
func (p *program) explain(err error) error {
	if own := (*Error)(nil); errors.As(err, &own) {
		return own
	}
	return p.fromTemplate(err)
}
