package grimoires

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/tmpl"
)

// check finds the errors in a template in the grimoire's own file. Prompts are checked separately, see
// promptsOf.
func (r *reader) check(t template) {
	var uses tmpl.Uses
	var err error
	switch t.kind {
	case promptTemplate:
		return
	case commandTemplate:
		uses, err = tmpl.CheckCommand("", t.text)
	case conditionTemplate:
		if word := strings.TrimSpace(t.text); !strings.Contains(word, "{{") && word != "true" && word != "false" {
			r.doc.Fail(t.at, fmt.Sprintf("when must evaluate to true or false, not %q", word), `write "{{...}}"`)
			return
		}
		uses, err = tmpl.CheckText("", t.text)
	case variableTemplate:
		uses, err = tmpl.CheckVariable("", t.text)
	case textTemplate:
		uses, err = tmpl.CheckText("", t.text)
	}
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		r.doc.FailAt(t.at, bad.Line, bad.Column, bad.Msg, bad.Hint)
		return
	}
	data := r.scope.shape(t.step, nil)
	if t.kind == commandTemplate || t.kind == variableTemplate {
		data.keys[secrets] = shape{open: true}
	}
	faults := append(r.scope.faults(t.step, data, uses.Data), unsecretsIn(uses.Data)...)
	if t.kind == conditionTemplate {
		faults = append(faults, r.scope.condition(t.step, uses.Sole)...)
	}
	for _, f := range faults {
		r.doc.FailAt(t.at, f.line, f.column, f.msg, f.hint)
	}
}

// outputs checks that the names of outputs do not hide other names.
func (r *reader) outputs() {
	for _, w := range r.wrote {
		name := w.text
		_, isReserved := reserved()[name]
		_, isStep := r.scope.steps[name]
		switch {
		case !nameRE.MatchString(name):
			r.doc.Fail(w.at, fmt.Sprintf("%q cannot be a name", name), "letters, digits, - and _")
		case isReserved:
			r.doc.Fail(w.at, fmt.Sprintf("output name %q is reserved in templates", name), "")
		case isStep && name != w.step:
			r.doc.Fail(w.at, fmt.Sprintf("output name %q is the name of a step", name), "")
		}
	}
}

// secrets is the name of the secrets in the data of templates.
const secrets = "secrets"

// unsecretsIn finds uses of secrets without a name or with an invalid name.
func unsecretsIn(refs []tmpl.Reference) []fault {
	var all []fault
	for _, ref := range refs {
		switch {
		case ref.Path[0] != secrets:
		case len(ref.Path) != 2:
			all = append(all, fault{ref.Line, ref.Column, "missing name of a secret", "{{.secrets.NAME}}"})
		case !envRE.MatchString(ref.Path[1]):
			all = append(all, fault{ref.Line, columnOf(ref, 1), fmt.Sprintf("%q cannot be the name of a secret", ref.Path[1]), "letters, digits and _, not starting with a digit"})
		}
	}
	return all
}

// Secrets returns the names of all secrets that the grimoire's steps use, sorted.
func (g *Grimoire) Secrets() []string {
	var all []string
	for s := range g.All() {
		if k, ok := s.Kind.(executing); ok {
			all = append(all, k.secrets()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func secretsOfEnv(env map[string]string) []string {
	var all []string
	for _, text := range env {
		if uses, err := tmpl.CheckVariable("", text); err == nil {
			all = append(all, secretsIn(uses.Data)...)
		}
	}
	return all
}

func secretsIn(refs []tmpl.Reference) []string {
	var names []string
	for _, ref := range refs {
		if ref.Path[0] == secrets && len(ref.Path) == 2 {
			names = append(names, ref.Path[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
