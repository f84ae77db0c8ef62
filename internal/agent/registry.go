package agent

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/evaluator"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/tool"
)

//go:embed builtin/*.md
var shipped embed.FS

// ShippedPath is the prefix of the paths of built-in definitions.
const ShippedPath = "coven:"

// Place is a directory with definitions.
type Place struct {
	Root   string // of the repository; empty if the directory is the user's
	Dir    string // relative to Root
	Show   string // prefix for the paths of its files in messages
	Source string
	Made   map[string]string // built-in definitions by file name, used instead of Dir; Show is ShippedPath
}

// Registry holds the definitions of all places.
type Registry struct {
	scripts  *evaluator.Evaluator
	place    int     // number of the place that is being read
	found    []Found // in the order of the places
	problems []Problem
}

// Found is a definition file. It may be invalid.
type Found struct {
	Definition
	Problems []Problem
	Hides    []string // paths of the valid files whose name this one has taken
	place    int
}

// Usable reports whether the definition can start agents.
func (f Found) Usable() bool { return usable(f.Problems) && f.Enabled }

// Load reads the definitions that coven ships and those of all places, in ascending precedence. A missing
// directory is empty. A file that cannot be read is a problem, not an error. scripts evaluates TypeScript
// definitions.
func Load(scripts *evaluator.Evaluator, places ...Place) *Registry {
	r := &Registry{scripts: scripts}
	r.addShipped()
	for _, p := range places {
		r.place++
		r.addPlace(p)
	}
	r.noteReplaced()
	r.noteHidden()
	return r
}

func (r *Registry) addShipped() {
	files, _ := fs.Glob(shipped, "builtin/*.md") // the pattern is valid
	for _, file := range files {
		content, _ := shipped.ReadFile(file) // the file exists
		r.add(ShippedPath+path.Base(file), SourceSystem, content)
	}
}

func (r *Registry) add(show, source string, content []byte) {
	parse := Parse
	if source == SourceClaude {
		parse = ParseClaude
	}
	d, problems := parse(show, content)
	r.addParsed(show, source, d, problems)
}

func (r *Registry) addParsed(show, source string, d Definition, problems []Problem) {
	d.Source = source
	place := r.place
	if source == SourceClaude && d.Name == grimoires.DefaultAgent {
		place = belowShipped
	}
	for _, other := range r.found {
		if source != SourceClaude && other.place == place && other.Name == d.Name && d.Name != "" {
			problems = append(problems, Problem{
				Path: show, Line: 1, Agent: d.Name, Field: "name",
				Message: fmt.Sprintf("duplicate agent '%s' in %s and %s", d.Name, path.Base(other.Path), path.Base(show)),
			})
		}
	}
	r.found = append(r.found, Found{Definition: d, Problems: problems, place: place})
	r.problems = append(r.problems, problems...)
}

// belowShipped is the place of the definitions that coven's own hide. An agent of Claude Code that is named like
// coven's primary agent is a subagent for another program, and must not get the work of every step.
const belowShipped = -1

// addPlace adds the definitions of a place. It follows links that stay in the repository.
func (r *Registry) addPlace(p Place) {
	if p.Made != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Made)) {
			r.add(p.Show+name, p.Source, []byte(p.Made[name]))
		}
		return
	}
	tree, closeTree, err := regularfile.OpenTree(p.Root, p.Dir)
	if err == nil {
		defer closeTree()
		err = r.addDir(directory{p, tree, ".", new([]fs.FileInfo)})
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.problems = append(r.problems, Problem{Path: p.Show, Message: fmt.Sprintf("cannot read %s: %v", p.Show, regularfile.Cause(err))})
	}
}

// directory is a directory of a place.
type directory struct {
	Place
	tree fs.FS
	at   string         // its path in the tree
	seen *[]fs.FileInfo // directories of the place that have been read
}

// addDir adds the .md, .yaml, .yml and .ts files of a directory, without subdirectories. For Claude Code, it adds
// only .md files but includes subdirectories, each once, as links may lead to one several times.
func (r *Registry) addDir(p directory) error {
	own, err := fs.Stat(p.tree, p.at)
	if err != nil || slices.ContainsFunc(*p.seen, func(dir fs.FileInfo) bool { return os.SameFile(dir, own) }) {
		return err
	}
	*p.seen = append(*p.seen, own)
	entries, err := regularfile.Entries(p.tree, p.at)
	if err != nil {
		return err
	}
	evaluated := r.evaluate(p, entries)
	for _, e := range entries {
		result, isScript := evaluated[e.Name]
		switch show := path.Join(p.Show, p.at, e.Name); {
		case isScript && !result.Helper:
			d, problems := ofScript(show, result)
			r.addParsed(show, p.Source, d, problems)
		case isScript:
		case p.Source == SourceClaude:
			r.addClaude(p, e)
		case !e.IsDir && slices.Contains([]string{".md", ".yaml", ".yml"}, path.Ext(e.Name)):
			if content, ok := r.read(p, e); ok {
				r.add(show, p.Source, content)
			}
		}
	}
	return nil
}

// addClaude adds an entry of a directory for Claude Code.
func (r *Registry) addClaude(p directory, e regularfile.Entry) {
	inside := directory{p.Place, p.tree, path.Join(p.at, e.Name), p.seen}
	switch {
	case e.IsDir:
		if err := r.addDir(inside); err != nil {
			r.unreadable(p, e.Name, err)
		}
	case path.Ext(e.Name) == ".md":
		if content, ok := r.read(p, e); ok && isClaudeFile(content) {
			r.add(path.Join(p.Show, inside.at), p.Source, content)
		}
	case e.Err != nil && path.Ext(e.Name) == "": // probably a directory
		r.unreadable(p, e.Name, e.Err)
	}
}

// read returns the content of a file. If the file cannot be read, it adds a problem.
func (r *Registry) read(p directory, e regularfile.Entry) ([]byte, bool) {
	content, err := []byte(nil), e.Err
	if err == nil {
		content, err = regularfile.ReadFrom(p.tree, path.Join(p.at, e.Name), MaxFile)
	}
	if err != nil {
		r.unreadable(p, e.Name, err)
	}
	return content, err == nil
}

// unreadable adds the problem of a file that cannot be read.
func (r *Registry) unreadable(p directory, file string, err error) {
	show, name := path.Join(p.Show, p.at, file), strings.TrimSuffix(file, path.Ext(file))
	problem := Problem{Path: show, Line: 1, Agent: name, Message: fmt.Sprintf("Agent '%s' cannot be read: %v", name, regularfile.Cause(err))}
	r.found = append(r.found, Found{
		Definition: Definition{Name: name, Source: p.Source, Path: show, Enabled: true}, Problems: []Problem{problem}, place: r.place,
	})
	r.problems = append(r.problems, problem)
}

// Knows adds names of tools, in addition to coven's, that definitions may name.
func (r *Registry) Knows(tools []string) {
	if len(tools) == 0 {
		return
	}
	r.problems = nil
	for i, f := range r.found {
		_, unknown := tool.IDs(f.Tools)
		unknown = slices.DeleteFunc(unknown, func(name string) bool {
			return slices.ContainsFunc(tools, func(t string) bool { return strings.EqualFold(t, name) })
		})
		r.found[i].Problems = slices.DeleteFunc(slices.Clone(f.Problems), func(p Problem) bool { return p.Warning && p.Field == "tools" && len(unknown) == 0 })
		for j, p := range r.found[i].Problems {
			if p.Warning && p.Field == "tools" {
				r.found[i].Problems[j].Message = unknownTools(f.Name, unknown)
			}
		}
		r.problems = append(r.problems, r.found[i].Problems...)
	}
}

// noteReplaced adds a note to invalid definitions that a definition of an earlier place replaces.
func (r *Registry) noteReplaced() {
	for i, f := range r.found {
		if usable(f.Problems) {
			continue
		}
		if instead, ok := r.byName(f.Name); ok {
			r.found[i].Problems[0].Message += fmt.Sprintf("; the %s agent '%s' is used instead", instead.Source, f.Name)
			for j, p := range r.problems {
				if p.Path == f.Path && p.Line == f.Problems[0].Line && p.Field == f.Problems[0].Field {
					r.problems[j].Message = r.found[i].Problems[0].Message
					break
				}
			}
		}
	}
}

// noteHidden adds to each effective definition the valid ones that it hides.
func (r *Registry) noteHidden() {
	for _, hidden := range r.found {
		i := r.first(hidden.Name, func(f Found) bool { return usable(f.Problems) })
		if i >= 0 && r.found[i].Path != hidden.Path && usable(hidden.Problems) {
			r.found[i].Hides = append(r.found[i].Hides, hidden.Path)
		}
	}
}

// first returns the index of the definition with a name that takes precedence: the first one of the last place
// that has one. It returns -1 if there is none.
func (r *Registry) first(name string, suits func(Found) bool) int {
	first := -1
	for i, f := range r.found {
		if f.Name == name && suits(f) && (first < 0 || f.place > r.found[first].place) {
			first = i
		}
	}
	return first
}

// byName returns the effective valid definition for a name, even if it is disabled.
func (r *Registry) byName(name string) (Found, bool) {
	if i := r.first(name, func(f Found) bool { return usable(f.Problems) }); i >= 0 {
		return r.found[i], true
	}
	return Found{}, false
}

// Last returns the definition for a name in the last place that has one, even if it is invalid.
func (r *Registry) Last(name string) (Found, bool) {
	if i := r.first(name, func(Found) bool { return true }); i >= 0 {
		return r.found[i], true
	}
	return Found{}, false
}

// Agents returns the usable definitions, sorted by name.
func (r *Registry) Agents() []Definition {
	var all []Definition
	for _, f := range r.found {
		if last, ok := r.byName(f.Name); ok && last.Path == f.Path && f.Usable() {
			all = append(all, f.Definition)
		}
	}
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// ByDomain returns the agents of a domain, sorted by name.
func (r *Registry) ByDomain(domain string) []Definition {
	return slices.DeleteFunc(r.Agents(), func(d Definition) bool { return d.Domain != domain })
}

// Names returns the names of the usable agents.
func (r *Registry) Names() []string {
	var names []string
	for _, d := range r.Agents() {
		names = append(names, d.Name)
	}
	return names
}

// NotFoundError is the error for a name without a usable agent.
type NotFoundError struct {
	Name   string
	Near   string // a similar name, if there is one
	Reason string // why the agent's definition is unusable, if it has one
}

func (e *NotFoundError) Error() string {
	text := fmt.Sprintf("agent not found: '%s'", e.Name)
	switch {
	case e.Reason != "":
		text += ": " + e.Reason
	case e.Near != "":
		text += fmt.Sprintf(" (did you mean '%s'?)", e.Near)
	}
	return text
}

// NextCommand returns the command that lists the agents.
func (e *NotFoundError) NextCommand() string { return "coven agents list" }

// Get returns the usable agent with the exact name. The error is a *NotFoundError.
func (r *Registry) Get(name string) (Definition, error) {
	if f, ok := r.byName(name); ok && f.Enabled {
		return f.Definition, nil
	}
	missing := &NotFoundError{Name: name}
	missing.Near, _ = didyoumean.Nearest(name, r.Names())
	if _, disabled := r.byName(name); !disabled {
		f, _ := r.Last(name)
		missing.Reason = firstReason(f.Problems)
	}
	return Definition{}, missing
}

// Find returns the definition with the exact name, including disabled and invalid ones.
func (r *Registry) Find(name string) (Found, error) {
	if f, ok := r.byName(name); ok {
		return f, nil
	}
	if f, ok := r.Last(name); ok {
		return f, nil
	}
	_, err := r.Get(name)
	return Found{}, err
}

// All returns all files, in the order of the places.
func (r *Registry) All() []Found { return r.found }

// Problems returns the problems of all files, in the order of the places.
func (r *Registry) Problems() []Problem { return r.problems }
