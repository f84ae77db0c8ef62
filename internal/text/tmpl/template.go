package tmpl

import (
	"fmt"
	"strings"
)

// Template is a parsed template.
type Template struct {
	program *program
	err     error
}

// NewCommand parses a template for a command of sh -c. Every value is quoted for the
// shell exactly once, except with raw (see Uses.Raw). Render reports parse errors.
func NewCommand(name, text string) Template { return newTemplate(name, text, command) }

// NewCondition parses a template for Template.Bool. Bool reports parse errors.
func NewCondition(name, text string) Template { return newTemplate(name, text, plain) }

func newTemplate(name, text string, f form) Template {
	p, err := compile(name, text, f)
	return Template{p, err}
}

// Render renders the template.
func (t Template) Render(data map[string]any) (string, error) { return t.render(data, nil) }

func (t Template) render(data map[string]any, in *including) (string, error) {
	if t.err != nil {
		return "", t.err
	}
	var out strings.Builder
	if err := t.program.execute(&out, data, in); err != nil {
		return "", t.program.explain(err)
	}
	return out.String(), nil
}

// Bool renders a template that must evaluate to true or false. It ignores surrounding
// space.
func (t Template) Bool(data map[string]any) (bool, error) {
	out, err := t.Render(data)
	if err != nil {
		return false, err
	}
	switch out = strings.TrimSpace(out); out {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, &Error{
		Name: t.program.name, Line: 1, Column: 1,
		Msg: fmt.Sprintf("this must evaluate to true or false, not %q", shorten(out)), Hint: `compare: {{eq .x "y"}}`,
	}
}
