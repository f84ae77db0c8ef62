package grimoires

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// Load reads a grimoire and checks it with its prompts. The error is an *UnknownError if it does not exist,
// or a yamldoc.Errors with all errors.
func (l *Library) Load(name string) (*Grimoire, error) {
	data, label, err := l.find("grimoire", name)
	if err != nil {
		return nil, err
	}
	g, _, err := l.load(name, fileOf(name, label), label, data)
	return g, err
}

// fileOf returns the name of a grimoire's file for errors.
func fileOf(name, label string) string {
	if label == BuiltIn {
		return name + ".yaml (built in)"
	}
	return label
}

// load reads a grimoire and checks it with its prompts. It also returns the prompts that it found.
func (l *Library) load(name, file, label string, data []byte) (*Grimoire, *prompts, error) {
	r, g, err := read(file, data)
	if err != nil {
		return nil, nil, err
	}
	g.Source = label
	if g.Name != name && g.Name != "" {
		r.doc.Fail(r.doc.Key(r.doc.Root(), "name"), fmt.Sprintf("grimoire name %q does not match file name %q", g.Name, name), "use the same name")
	}
	p, err := l.promptsOf(g)
	if err != nil {
		return nil, nil, err
	}
	r.blame(p.faults)
	if all := append(asErrors(r.doc.Err()), p.elsewhere...); len(all) > 0 {
		return nil, p, all
	}
	return g, p, nil
}

func asErrors(err error) yamldoc.Errors {
	var all yamldoc.Errors
	errors.As(err, &all)
	return all
}

// blame records the errors in the prompts of steps at the position where the step names the prompt.
func (r *reader) blame(faults map[use][]fault) {
	for _, t := range r.found {
		if t.kind != promptTemplate {
			continue
		}
		for _, f := range faults[use{t.step, t.text}] {
			r.doc.FailAt(t.at, f.line, f.column, f.msg, f.hint)
		}
	}
}

// prompts contains the prompts of a grimoire and their errors.
type prompts struct {
	library   *Library
	grimoire  *Grimoire
	scope     *scope
	byName    map[string]Prompt
	count     map[string]int  // number of includes, by step
	faults    map[use][]fault // in the grimoire's own file
	elsewhere yamldoc.Errors  // in the prompts' files
	replaced  map[string]bool // names of the overrides in whose place the grimoire uses the shipped prompts
	unfit     yamldoc.Errors  // in these overrides
}

type use struct{ step, prompt string }

func newPrompts(l *Library, g *Grimoire) *prompts {
	return &prompts{
		library: l, grimoire: g, scope: newScope(g),
		byName: map[string]Prompt{}, count: map[string]int{}, faults: map[use][]fault{}, replaced: map[string]bool{},
	}
}

// promptsOf finds the prompts of a grimoire, including included ones. It fails if a file cannot be read. A grimoire
// that coven ships uses the shipped prompt instead of an override that needs other inputs: that was written for
// another grimoire.
func (l *Library) promptsOf(g *Grimoire) (*prompts, error) {
	p := newPrompts(l, g)
	for {
		before := len(p.replaced)
		if err := p.steps(); err != nil {
			return nil, err
		}
		if len(p.replaced) == before {
			return p, nil
		}
		again := newPrompts(l, g)
		again.replaced, again.unfit = p.replaced, p.unfit
		p = again
	}
}

// steps finds the prompts of all steps.
func (p *prompts) steps() error {
	for s := range p.grimoire.All() {
		for _, a := range s.prompted() {
			if a.Prompt == "" {
				continue // reported elsewhere
			}
			if err := p.agent(stepAgent{s.Name, a}); err != nil {
				return err
			}
		}
	}
	return nil
}

// isOverride reports whether a prompt overrides one that coven ships, for a grimoire that coven ships.
func (p *prompts) isOverride(found Prompt) bool {
	if p.grimoire.Source != BuiltIn || found.Source == BuiltIn {
		return false
	}
	_, err := p.library.shipped().Prompt(found.Name)
	return err == nil
}

// isInline reports whether a step's prompt is a text rather than a name.
func isInline(prompt string) bool { return strings.Contains(prompt, "\n") }

type stepAgent struct {
	step  string
	agent Agent
}

func (p *prompts) agent(s stepAgent) error {
	data := p.scope.shape(s.step, slices.Sorted(maps.Keys(s.agent.Input)))
	if !isInline(s.agent.Prompt) {
		return p.file(s, s.agent.Prompt, nil, data, func(msg, hint string) {
			p.fault(s, fault{msg: msg, hint: hint})
		})
	}
	uses, err := tmpl.CheckPrompt("", s.agent.Prompt)
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		p.fault(s, fault{bad.Line, bad.Column, bad.Msg, bad.Hint})
		return nil
	}
	for _, f := range p.scope.faults(s.step, data, uses.Data) {
		p.fault(s, f)
	}
	return p.includes(s, uses.Includes, nil, data, func(f fault) { p.fault(s, f) })
}

// includes adds the included prompts. open is the chain of prompts up to the including one; data is that
// prompt's data; blame is called with its errors.
func (p *prompts) includes(s stepAgent, all []tmpl.Include, open []string, data shape, blame func(fault)) error {
	for _, in := range all {
		for _, f := range p.scope.hidden(in) {
			blame(f)
		}
		missing := func(msg, hint string) { blame(fault{in.Line, in.Column, msg, hint}) }
		p.count[s.step]++
		switch {
		case p.count[s.step] == tmpl.MaxIncludes+1:
			missing(fmt.Sprintf("the prompt of the step %q includes more than %d others", s.step, tmpl.MaxIncludes), "")
			return nil
		case p.count[s.step] > tmpl.MaxIncludes:
			return nil
		}
		if err := p.file(s, in.Path[0], open, p.scope.included(data, in), missing); err != nil {
			return err
		}
	}
	return nil
}

func (p *prompts) fault(s stepAgent, f fault) {
	at := use{s.step, s.agent.Prompt}
	p.faults[at] = append(p.faults[at], f)
}

// file adds the prompt with this name and the prompts that it includes. open is the chain of including
// prompts; data is the prompt's data; missing is called if it does not exist.
func (p *prompts) file(s stepAgent, name string, open []string, data shape, missing func(msg, hint string)) error {
	name = strings.TrimSuffix(name, ".md")
	found, ok := p.byName[name]
	if !ok {
		var err error
		unknown := (*UnknownError)(nil)
		from := p.library
		if p.replaced[name] {
			from = from.shipped()
		}
		switch found, err = from.Prompt(name); {
		case errors.As(err, &unknown):
			msg := fmt.Sprintf("unknown prompt '%s'", name)
			if p.grimoire.Name != "" {
				msg = fmt.Sprintf("grimoire '%s' step '%s': %s", p.grimoire.Name, s.step, msg)
			}
			missing(msg, strings.ReplaceAll(unknown.Hint, `"`, "'"))
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
	if len(open) > tmpl.MaxDepth {
		missing(fmt.Sprintf("includes nest deeper than %d", tmpl.MaxDepth), "")
		return nil
	}
	return p.look(s, found, append(slices.Clone(open), name), data)
}

// look checks a prompt for a step.
func (p *prompts) look(s stepAgent, found Prompt, open []string, data shape) error {
	uses, err := tmpl.CheckPrompt(found.file(), found.Text)
	if bad := (*tmpl.Error)(nil); errors.As(err, &bad) {
		p.blame(found, fault{bad.Line, bad.Column, bad.Msg, bad.Hint})
		return nil
	}
	blame := p.blame
	if p.isOverride(found) {
		blame = p.replace
	}
	for _, f := range p.scope.faults(s.step, data, uses.Data) {
		blame(found, p.explain(f, s, open))
	}
	return p.includes(s, uses.Includes, open, data, func(f fault) { blame(found, f) })
}

// explain adds to a fault how its prompt was reached. open is the chain of prompts up to the one with the
// fault.
func (p *prompts) explain(f fault, s stepAgent, open []string) fault {
	if n := len(open); n > 1 {
		f.msg += fmt.Sprintf(", where %q includes it", open[n-2])
	}
	if p.grimoire.Name != "" {
		f.msg += fmt.Sprintf(", in the step %q of the grimoire %q", s.step, p.grimoire.Name)
	}
	return f
}

// replace records the first error in an override, in whose place the shipped prompt is used.
func (p *prompts) replace(in Prompt, f fault) {
	if p.replaced[in.Name] {
		return
	}
	p.replaced[in.Name] = true
	f.msg += ", which uses the shipped prompt instead"
	p.unfit = append(p.unfit, errorIn(in, f))
}

// blame records an error in a prompt's file, once.
func (p *prompts) blame(in Prompt, f fault) {
	if e := errorIn(in, f); !slices.Contains(p.elsewhere, e) {
		p.elsewhere = append(p.elsewhere, e)
	}
}

func errorIn(in Prompt, f fault) yamldoc.Error {
	return yamldoc.Error{File: in.file(), Line: max(f.line, 1), Column: max(f.column, 1), Msg: f.msg, Hint: f.hint}
}
