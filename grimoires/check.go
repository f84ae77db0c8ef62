package grimoires

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/tmpl"
)

// check finds what is wrong in a template of the grimoire itself. Prompts are
// checked where they are known: see prompts.go.
func (r *reader) check(t template) {
	var uses tmpl.Uses
	var err error
	switch t.kind {
	case promptTemplate:
		return
	case commandTemplate:
		uses, err = tmpl.CheckCommand("", t.at.Value)
	case conditionTemplate:
		if word := strings.TrimSpace(t.at.Value); !strings.Contains(word, "{{") && word != "true" && word != "false" {
			r.doc.Fail(t.at, fmt.Sprintf("when must become true or false, not %q", word), `write "{{...}}"`)
			return
		}
		uses, err = tmpl.CheckText("", t.at.Value)
	case textTemplate:
		uses, err = tmpl.CheckText("", t.at.Value)
	}
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		r.doc.FailAt(t.at, bad.Line, bad.Column, bad.Msg, bad.Hint)
		return
	}
	faults := r.scope.faults(t.step, r.scope.shape(t.step, nil), uses.Data)
	if t.kind == conditionTemplate {
		faults = append(faults, r.scope.condition(t.step, uses.Sole)...)
	}
	for _, f := range faults {
		r.doc.FailAt(t.at, f.line, f.column, f.msg, f.hint)
	}
}

// outputs demands that what steps write with output hides nothing.
func (r *reader) outputs() {
	for _, w := range r.wrote {
		name := w.at.Value
		_, isReserved := reserved()[name]
		_, isStep := r.scope.steps[name]
		switch {
		case !nameRE.MatchString(name):
			r.doc.Fail(w.at, fmt.Sprintf("%q cannot be a name", name), "letters, digits, - and _")
		case isReserved:
			r.doc.Fail(w.at, fmt.Sprintf("output cannot be called %q: templates have another meaning for it", name), "")
		case isStep && name != w.step:
			r.doc.Fail(w.at, fmt.Sprintf("output cannot be called %q: that is another step", name), "")
		}
	}
}
