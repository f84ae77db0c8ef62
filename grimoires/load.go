package grimoires

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/tmpl"
	"github.com/coven-run/coven/internal/yamldoc"
)

// Load reads a grimoire and checks it with its prompts. The error is an
// *UnknownError when there is none of that name, and a yamldoc.Errors with
// everything that is wrong otherwise.
func (l *Library) Load(name string) (*Grimoire, error) {
	data, label, err := l.find("grimoire", name)
	if err != nil {
		return nil, err
	}
	file := label
	if label == BuiltIn {
		file = name + ".yaml (built in)"
	}
	r, g, err := read(file, data)
	if err != nil {
		return nil, err
	}
	g.Source = label
	if g.Name != name && g.Name != "" {
		r.doc.Fail(r.doc.Text(r.doc.Root(), "name"), fmt.Sprintf("the grimoire is called %q but its file %q", g.Name, name), "make them the same")
	}
	p, err := l.promptsOf(g)
	if err != nil {
		return nil, err
	}
	r.blame(p.faults)
	if all := append(asErrors(r.doc.Err()), p.elsewhere...); len(all) > 0 {
		return nil, all
	}
	return g, nil
}

func asErrors(err error) yamldoc.Errors {
	var all yamldoc.Errors
	errors.As(err, &all)
	return all
}

// blame records what is wrong with the prompts of steps where the steps name
// them.
func (r *reader) blame(faults map[string][]fault) {
	for _, t := range r.found {
		if t.kind != promptTemplate {
			continue
		}
		for _, f := range faults[t.step] {
			r.doc.FailAt(t.at, f.line, f.column, f.msg, f.hint)
		}
	}
}

// prompts are the prompts that a grimoire uses, and what is wrong with them.
type prompts struct {
	library   *Library
	grimoire  *Grimoire
	scope     *scope
	byName    map[string]Prompt
	faults    map[string][]fault // of the grimoire's own file, by step
	elsewhere yamldoc.Errors     // of the prompts' files
}

// promptsOf finds the prompts of a grimoire, included ones too. Its error says
// that a file cannot be read.
func (l *Library) promptsOf(g *Grimoire) (*prompts, error) {
	p := &prompts{
		library: l, grimoire: g, scope: newScope(g),
		byName: map[string]Prompt{}, faults: map[string][]fault{},
	}
	for s := range g.All() {
		if s.Merge != nil && s.Merge.Resolve {
			s.Agent = resolver()
		}
		if s.Agent == nil || s.Agent.Prompt == "" {
			continue
		}
		if err := p.step(s); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// isInline reports whether the prompt of a step is the prompt itself, and not
// its name.
func isInline(prompt string) bool { return strings.Contains(prompt, "\n") }

func (p *prompts) step(s Step) error {
	if !isInline(s.Agent.Prompt) {
		return p.file(s, s.Agent.Prompt, nil, func(msg, hint string) {
			p.fault(s, fault{msg: msg, hint: hint})
		})
	}
	uses, err := tmpl.CheckPrompt("", s.Agent.Prompt)
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		p.fault(s, fault{bad.Line, bad.Column, bad.Msg, bad.Hint})
		return nil
	}
	for _, f := range p.scope.faults(s.Name, inputs(s), uses.Data) {
		p.fault(s, f)
	}
	for _, in := range uses.Includes {
		err := p.file(s, in.Path[0], nil, func(msg, hint string) {
			p.fault(s, fault{in.Line, in.Column, msg, hint})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func inputs(s Step) []string { return slices.Sorted(maps.Keys(s.Agent.Input)) }

func (p *prompts) fault(s Step, f fault) { p.faults[s.Name] = append(p.faults[s.Name], f) }

// file takes in the prompt of a name and what it includes. open are the prompts
// that include it; missing is told when there is none.
func (p *prompts) file(s Step, name string, open []string, missing func(msg, hint string)) error {
	name = strings.TrimSuffix(name, ".md")
	found, ok := p.byName[name]
	if !ok {
		var err error
		unknown := (*UnknownError)(nil)
		switch found, err = p.library.Prompt(name); {
		case errors.As(err, &unknown):
			missing(fmt.Sprintf("grimoire '%s' step '%s': unknown prompt '%s'", p.grimoire.Name, s.Name, name), strings.ReplaceAll(unknown.Hint, `"`, "'"))
			return nil
		case err != nil:
			return err
		}
		p.byName[name] = found
	}
	if slices.Contains(open, name) {
		missing(fmt.Sprintf("the prompt %q includes itself: %s", name, strings.Join(append(open, name), " -> ")), "")
		return nil
	}
	return p.look(s, found, append(slices.Clone(open), name))
}

// look checks a prompt for a step.
func (p *prompts) look(s Step, found Prompt, open []string) error {
	uses, err := tmpl.CheckPrompt(found.file(), found.Text)
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		p.blame(found, fault{bad.Line, bad.Column, bad.Msg, bad.Hint})
		return nil
	}
	for _, f := range p.scope.faults(s.Name, inputs(s), uses.Data) {
		f.msg += fmt.Sprintf(", in the step %q of the grimoire %q", s.Name, p.grimoire.Name)
		p.blame(found, f)
	}
	for _, in := range uses.Includes {
		err := p.file(s, in.Path[0], open, func(msg, hint string) {
			p.blame(found, fault{in.Line, in.Column, msg, hint})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blame records what is wrong in a prompt's file, once.
func (p *prompts) blame(in Prompt, f fault) {
	e := yamldoc.Error{File: in.file(), Line: max(f.line, 1), Column: max(f.column, 1), Msg: f.msg, Hint: f.hint}
	if !slices.Contains(p.elsewhere, e) {
		p.elsewhere = append(p.elsewhere, e)
	}
}
