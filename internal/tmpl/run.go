package tmpl

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

// including is the state of a render that may include.
type including struct {
	lookup Lookup
	open   []string // names being included, the innermost last
}

// maxDepth bounds how deep includes may nest.
const maxDepth = 10

func (p *program) execute(out io.Writer, data map[string]any, in *including) error {
	include := func(string) (string, error) { return "", fmt.Errorf("include works in prompts only") }
	if in != nil {
		include = func(name string) (string, error) { return in.include(name, data) }
	}
	t := template.New(treeName).Funcs(p.functions(include))
	if _, err := t.AddParseTree(treeName, p.tree); err != nil {
		return fmt.Errorf("add template: %w", err)
	}
	return t.Execute(out, data)
}

func (in *including) include(name string, data map[string]any) (string, error) {
	name = strings.TrimSuffix(name, ".md")
	if slices.Contains(in.open, name) {
		return "", fmt.Errorf("%q includes itself: %s", name, strings.Join(append(in.open, name), " -> "))
	}
	if len(in.open) == maxDepth {
		return "", fmt.Errorf("includes nest deeper than %d", maxDepth)
	}
	file, text, ok := in.lookup(name)
	if !ok {
		return "", fmt.Errorf("unknown prompt %q", name)
	}
	deeper := &including{in.lookup, append(slices.Clone(in.open), name)}
	return render(file, text, prompt, data, deeper)
}
