package tmpl

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Limits for includes.
const (
	MaxDepth    = 10   // levels of nesting
	MaxIncludes = 1000 // includes in one prompt, including nested ones
)

// Parent is the name by which an included prompt accesses the data of the including
// one: {{.parent.task.title}}. It is not valid as a parameter name.
const Parent = "parent"

const includeHint = `{{include "name" key="text" other=.task.title}}`

func (p *program) includeFault(at parse.Pos) *Error {
	return p.fail(at, "include takes the name of one prompt, in quotes, and parameters", includeHint)
}

// include records an include and rewrites its parameters: key=value and "key" value
// become "key" value.
func (p *program) include(c *parse.CommandNode, root bool) error {
	if len(c.Args) < 2 {
		return p.includeFault(c.Args[0].Position())
	}
	name, ok := c.Args[1].(*parse.StringNode)
	if !ok {
		return p.includeFault(c.Args[0].Position())
	}
	in := Include{Reference: p.reference(name.Pos, []string{name.Text})}
	for i := 2; i < len(c.Args); i += 2 {
		key, err := p.paramName(c.Args[i])
		if err != nil {
			return err
		}
		if i+1 == len(c.Args) || p.isKey(c.Args[i+1]) {
			return p.fail(key.Pos, fmt.Sprintf("the parameter %q has no value", key.Text), includeHint)
		}
		param := Param{Name: key.Text}
		param.Line, param.Column = p.place(int(key.Pos))
		param.Value, param.Text = p.paramValue(c.Args[i+1], root)
		if slices.ContainsFunc(in.Params, func(other Param) bool { return other.Name == key.Text }) {
			return p.fail(key.Pos, fmt.Sprintf("the parameter %q is given twice", key.Text), "")
		}
		in.Params, c.Args[i] = append(in.Params, param), key
	}
	p.uses.Includes = append(p.uses.Includes, in)
	return nil
}

func (p *program) isKey(n parse.Node) bool {
	field, ok := n.(*parse.FieldNode)
	if ok {
		_, ok = p.keyOf(field.Ident[0])
	}
	return ok
}

// paramName returns the name of a parameter as a string node.
func (p *program) paramName(n parse.Node) (*parse.StringNode, error) {
	key := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Position()}
	switch n := n.(type) {
	case *parse.StringNode:
		key.Text = n.Text
	case *parse.FieldNode:
		name, ok := p.keyOf(n.Ident[0])
		if !ok || len(n.Ident) > 1 {
			return nil, p.includeFault(start(n.Pos, n.Ident))
		}
		key.Text = name
	default:
		return nil, p.includeFault(n.Position())
	}
	if word := chain.FindString("." + key.Text); word != "."+key.Text || strings.ContainsRune(key.Text, '.') || strings.HasSuffix(word, "-") {
		return nil, p.fail(key.Pos, fmt.Sprintf("%q cannot be the name of a parameter", key.Text), "letters, digits, - and _, the first a letter")
	}
	if key.Text == Parent {
		return nil, p.fail(key.Pos, "the parameter name parent is reserved: it holds the data of the including prompt", "")
	}
	key.Quoted = strconv.Quote(key.Text)
	return key, nil
}

// paramValue determines the value of a parameter as far as it is known before the template runs.
func (p *program) paramValue(n parse.Node, root bool) (path []string, isText bool) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if root {
			return p.decoded(n.Ident), false
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			return p.decoded(n.Ident[1:]), false
		}
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		return nil, true
	}
	return nil, false
}

// including is the state of rendering with includes.
type including struct {
	lookup Lookup
	taken  map[string]any // initial data; parameters must not hide its names
	open   []string       // names of the current includes, innermost last
	count  *int           // number of includes so far
}

func (p *program) execute(out io.Writer, data map[string]any, in *including) error {
	include := func(string, ...any) (string, error) { return "", errors.New("include works in prompts only") }
	if in != nil {
		include = func(name string, params ...any) (string, error) { return in.include(name, params, data) }
	}
	t := template.New(treeName).Funcs(p.functions(include, in == nil))
	if _, err := t.AddParseTree(treeName, p.tree); err != nil {
		return fmt.Errorf("add template: %w", err)
	}
	return t.Execute(out, data)
}

// include renders another prompt with data, params, and a copy of data under the
// name parent.
func (in *including) include(name string, params []any, data map[string]any) (string, error) {
	name = strings.TrimSuffix(name, ".md")
	if slices.Contains(in.open, name) {
		return "", fmt.Errorf("%q includes itself: %s", name, strings.Join(append(in.open, name), " -> "))
	}
	if len(in.open) == MaxDepth {
		return "", fmt.Errorf("includes nest deeper than %d", MaxDepth)
	}
	if *in.count++; *in.count > MaxIncludes {
		return "", fmt.Errorf("the prompt includes more than %d others", MaxIncludes)
	}
	file, text, ok := in.lookup(name)
	if !ok {
		return "", fmt.Errorf("unknown prompt %q", name)
	}
	inner := maps.Clone(data)
	if inner == nil {
		inner = map[string]any{}
	}
	inner[Parent] = data
	for i := 0; i+1 < len(params); i += 2 {
		key, _ := params[i].(string)
		if _, taken := in.taken[key]; taken {
			return "", fmt.Errorf("the parameter %q hides a name that templates already have", key)
		}
		inner[key] = params[i+1]
	}
	deeper := &including{in.lookup, in.taken, append(slices.Clone(in.open), name), in.count}
	return render(file, text, prompt, inner, deeper)
}
