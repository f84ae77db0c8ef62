package grimoires

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// The defaults of a grimoire. Loops and merges are limited only by the run's limits.
const (
	defaultRun        = 2 * time.Hour
	defaultIterations = 3
	defaultRetries    = 1
	defaultReserve    = 0.1

	maxIterations = 100
	maxRetries    = 10
	maxDepth      = 8 // of nested loops
)

var (
	nameRE   = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	pluginRE = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,63}$`)
	envRE    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

type text = yamldoc.At[string]

// reader reads a grimoire from a document and collects its templates and uses.
type reader struct {
	doc   *yamldoc.Document
	names map[string]bool
	found []template // in the order of the steps
	wrote []template // names of outputs
	uses  []Use      // in the order of the file, and within a step in the order of its keys
	scope *scope
}

// template is a template of a step, with its position.
type template struct {
	kind templateKind
	step string
	text string
	at   yamldoc.Node
}

type templateKind int

const (
	textTemplate templateKind = iota
	variableTemplate
	conditionTemplate
	commandTemplate
	promptTemplate // inline, or the name of a prompt
)

// Parse reads a grimoire and finds all errors in it, except those that depend on prompts (see
// Library.Load). file is the name for errors, and the grimoire's Source. The error is a yamldoc.Errors.
func Parse(file string, data []byte) (*Grimoire, error) {
	r, g, err := read(file, data)
	if err != nil {
		return nil, err
	}
	if err := r.doc.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

func read(file string, data []byte) (*reader, *Grimoire, error) {
	doc, err := yamldoc.Parse(file, data)
	if err != nil {
		return nil, nil, err
	}
	doc.Explain(legacyKeys())
	r := &reader{doc: doc}
	g := r.grimoire(doc.Root())
	g.Source = file
	return r, g, nil
}

func (r *reader) grimoire(root yamldoc.Node) *Grimoire {
	r.names = map[string]bool{}
	g := &Grimoire{Timeout: defaultRun, Budget: RunBudget{Reserve: defaultReserve}}
	r.doc.DecodeNode(root, g)
	g.Description = strings.TrimSpace(g.Description)
	r.name(root, g.Name, "the grimoire")
	given := r.doc.Key(root, "budget")
	r.amount(given, g.Budget.Amount)
	if g.Budget.Reserve < 0 || g.Budget.Reserve > 0.9 {
		r.doc.Fail(r.doc.Key(given, "reserve"), "reserve is a share of the budget: 0 to 0.9", "")
	}
	g.Steps = r.steps(root, r.nodes(root, "steps"), 0)
	r.scope = newScope(g)
	r.outputs()
	for _, t := range r.found {
		r.check(t)
	}
	return g
}

func (r *reader) name(of yamldoc.Node, name, what string) {
	switch at := r.doc.Key(of, "name"); {
	case !at.Set():
		r.doc.Fail(of, what+" has no name", "")
	case !nameRE.MatchString(name):
		r.doc.Fail(at, fmt.Sprintf("%q cannot be a name", name), "letters, digits, - and _, at most 64, the first a letter or digit")
	}
}

func (r *reader) steps(of yamldoc.Node, nodes []yamldoc.Node, depth int) []Step {
	if len(nodes) == 0 {
		r.doc.Fail(of, "there are no steps", "list at least one under steps")
	}
	steps := make([]Step, len(nodes))
	for i, n := range nodes {
		steps[i] = r.step(n, depth)
	}
	return steps
}

// nodes returns the items of the list under a key of a mapping.
func (r *reader) nodes(of yamldoc.Node, key string) []yamldoc.Node {
	var all []yamldoc.Node
	r.doc.DecodeNode(r.doc.Key(of, key), &all)
	return all
}

// amount checks a budget. A budget without limits is an error.
func (r *reader) amount(given yamldoc.Node, a budget.Amount) {
	if !given.Set() {
		return
	}
	a.Check(r.doc, given)
	if a == (budget.Amount{}) {
		r.doc.Fail(given, "the budget limits nothing", "usd, tokens, turns or wall")
	}
}

// template records a template to check, if it is in the file.
func (r *reader) template(kind templateKind, step, text string, at yamldoc.Node) {
	if at.Set() {
		r.found = append(r.found, template{kind, step, text, at})
	}
}

func (r *reader) templates(kind templateKind, step string, texts map[string]string, at yamldoc.Node) {
	places := r.doc.Keys(at)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		r.template(kind, step, texts[key], places[key])
	}
}

// env checks the environment variables that a step sets.
func (r *reader) env(at position, env map[string]string) {
	given := r.doc.Key(at.node, "env")
	places := r.doc.Keys(given)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		switch {
		case !envRE.MatchString(name):
			r.doc.Fail(places[name], fmt.Sprintf("%q cannot be the name of a variable", name), "letters, digits and _")
		case strings.HasPrefix(name, "COVEN_"):
			r.doc.Fail(places[name], fmt.Sprintf("%q is coven's own variable", name), "")
		}
	}
	r.templates(variableTemplate, at.step, env, given)
}

// workdir checks that a directory is inside the worktree.
func (r *reader) workdir(at position, dir string) {
	if given := r.doc.Key(at.node, "workdir"); given.Set() && !filepath.IsLocal(dir) {
		r.doc.Fail(given, fmt.Sprintf("%q is not a directory inside the worktree", dir), "a path relative to its top, without ..")
	}
}
