package grimoires

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// Checked is the result of validating a file.
type Checked struct {
	Kind     string // grimoire, prompt, matchers, or file
	Name     string // of the grimoire or prompt
	File     string
	Problems []Problem // empty if the file is valid
	Plugins  []Use     // plugins and agents that a grimoire names
}

// UseAgent is the Kind of a Use of an agent's definition.
const UseAgent = "agent"

// Use is a plugin or an agent that a grimoire names, and the position.
type Use struct {
	Kind         string // provider, reviewer, arbiter or UseAgent
	Name         string
	Line, Column int // 0 if unknown
}

// use records that the file names a plugin or agent.
func (r *reader) use(kind, name string, at yamldoc.Node) {
	if at.Set() && pluginRE.MatchString(name) {
		line, column := r.doc.Where(at)
		r.uses = append(r.uses, Use{kind, name, line, column})
	}
}

// Problem is an error in a file, or the error that the file exists.
type Problem struct {
	yamldoc.Error
	Warning bool // does not make the file invalid
}

// Bad reports whether the file has an error.
func (c Checked) Bad() bool {
	return slices.ContainsFunc(c.Problems, func(p Problem) bool { return !p.Warning })
}

type validation struct {
	library *Library
	files   []*Checked
}

// Validate checks everything that a run could read: the rules that choose grimoires, all grimoires, all
// prompts, and files that coven does not read. It fails if a directory cannot be read.
func (l *Library) Validate() ([]Checked, error) {
	v := &validation{library: l}
	for _, s := range l.sources {
		problems, err := s.leftovers()
		if err != nil {
			return nil, err
		}
		for _, p := range problems {
			c := v.file("file", "", p.File)
			c.Problems = append(c.Problems, p)
		}
	}
	v.matchers()
	names, err := l.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		v.grimoire(name)
	}
	if names, err = l.PromptNames(); err != nil {
		return nil, err
	}
	for _, name := range names {
		v.prompt(name)
	}
	return v.all(), nil
}

// ValidateName checks a grimoire with its prompts, or a prompt. The error is an *UnknownError if neither
// exists.
func (l *Library) ValidateName(name string) ([]Checked, error) {
	v := &validation{library: l}
	grimoires, err := l.Names()
	if err != nil {
		return nil, err
	}
	names, err := l.PromptNames()
	if err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(grimoires, name):
		v.grimoire(name)
	case slices.Contains(names, name):
		v.prompt(name)
	default:
		_, _, err := l.find("grimoire", name)
		return nil, err
	}
	return v.all(), nil
}

// ValidateFile checks any file: a prompt (.md), rules that choose grimoires, or a grimoire. file is its
// name for errors.
func (l *Library) ValidateFile(file string, data []byte) ([]Checked, error) {
	v := &validation{library: l}
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	switch {
	case filepath.Ext(base) == ".md":
		c := v.file("prompt", name, file)
		v.checkPrompt(c, Prompt{Name: name, Text: lf(strings.TrimPrefix(string(data), "\ufeff")), Source: file})
	case base == matchersFile:
		known, err := l.Names()
		if err != nil {
			return nil, err
		}
		v.blame(v.file("matchers", "", file), (&Matchers{}).read(file, data, known))
	default:
		_, _, err := l.load(name, file, file, data)
		c := v.file("grimoire", name, file)
		c.Plugins = usesIn(file, data)
		v.blame(c, err)
	}
	return v.all(), nil
}

// file returns the record of a file, and adds it if necessary.
func (v *validation) file(kind, name, file string) *Checked {
	for _, c := range v.files {
		if c.File == file {
			if c.Kind == "file" {
				c.Kind, c.Name = kind, name
			}
			return c
		}
	}
	c := &Checked{Kind: kind, Name: name, File: file}
	v.files = append(v.files, c)
	return c
}

func (v *validation) all() []Checked {
	var all []Checked
	for _, c := range v.files {
		all = append(all, *c)
	}
	return all
}

// blame records the problems in an error for the files that it names, or for c.
func (v *validation) blame(c *Checked, err error) {
	var found yamldoc.Errors
	template, one := (*tmpl.Error)(nil), yamldoc.Error{}
	switch {
	case err == nil:
		return
	case errors.As(err, &found):
	case errors.As(err, &one):
		found = yamldoc.Errors{one}
	case errors.As(err, &template):
		found = yamldoc.Errors{{File: template.Name, Line: template.Line, Column: max(template.Column, 1), Msg: template.Msg, Hint: template.Hint}}
	default:
		found = yamldoc.Errors{{File: c.File, Line: 1, Column: 1, Msg: err.Error()}}
	}
	for _, e := range found {
		at := v.file("file", "", e.File)
		if p := (Problem{Error: e}); !slices.Contains(at.Problems, p) {
			at.Problems = append(at.Problems, p)
		}
	}
}

func (v *validation) matchers() {
	for _, s := range v.library.sources {
		_, file, err := s.matchers()
		if file != "" && err == nil {
			v.file("matchers", "", file)
		}
	}
	_, err := v.library.Matchers()
	v.blame(&Checked{File: ".coven/" + matchersFile}, err)
}

func (v *validation) grimoire(name string) {
	data, label, err := v.library.find("grimoire", name)
	if err != nil {
		v.blame(&Checked{File: name + ".yaml"}, err)
		return
	}
	c := v.file("grimoire", name, fileOf(name, label))
	c.Plugins = usesIn(c.File, data)
	_, p, err := v.library.load(name, c.File, label, data)
	if p != nil {
		for _, name := range slices.Sorted(maps.Keys(p.byName)) {
			v.file("prompt", name, p.byName[name].file())
		}
		for _, e := range p.unfit {
			at := v.file("file", "", e.File)
			at.Problems = append(at.Problems, Problem{e, true})
		}
	}
	v.blame(c, err)
}

// usesIn returns the plugins and agents that a grimoire's file names.
func usesIn(file string, data []byte) []Use {
	r, _, err := read(file, data)
	if err != nil {
		return nil // not YAML, which is reported elsewhere
	}
	return r.uses
}

// prompt checks a prompt by itself, unless it was checked with a grimoire.
func (v *validation) prompt(name string) {
	found, err := v.library.Prompt(name)
	if err != nil {
		v.blame(&Checked{File: name + ".md"}, err)
		return
	}
	seen := slices.ContainsFunc(v.files, func(c *Checked) bool { return c.File == found.file() && c.Kind == "prompt" })
	if !seen {
		v.checkPrompt(v.file("prompt", name, found.file()), found)
	}
}

// checkPrompt checks a prompt without knowing its steps.
func (v *validation) checkPrompt(c *Checked, found Prompt) {
	if !utf8.ValidString(found.Text) {
		v.blame(c, &tmpl.Error{Name: c.File, Line: 1, Msg: "the prompt is not UTF-8 text"})
		return
	}
	p := newPrompts(v.library, &Grimoire{})
	p.scope.loose = true
	err := p.look(stepAgent{}, found, []string{found.Name}, p.scope.shape("", nil))
	if err == nil && len(p.elsewhere) > 0 {
		err = p.elsewhere
	}
	v.blame(c, err)
}
