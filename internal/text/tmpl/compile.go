package tmpl

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// program is a compiled template. The tree calls functions of this package
// instead of text/template's handling of keys and values: _get for .a.b,
// _put for the output of an action, _each for the operand of range.
type program struct {
	source
	form form
	tree *parse.Tree
	gets []access // indexed by the argument of _get
	uses Uses

	tested map[parse.Node]bool // tested paths, which need not exist
}

// access is one use of a path.
type access struct {
	Reference
	base string // start of the path in messages: "the data", "$x"
	root bool   // whether the path starts at the whole data
}

func compile(name, text string, f form) (*program, error) {
	p := &program{source: newSource(name, text), form: f}
	trees := map[string]*parse.Tree{}
	tree, err := parse.New(treeName).Parse(p.encoded, "", "", trees, signatures())
	if err != nil {
		return nil, p.fromTemplate(err)
	}
	for _, other := range trees {
		if other != tree {
			return nil, p.fail(other.Root.Pos, "define and block do not work here", `put it into a prompt and {{include "name"}} it`)
		}
	}
	p.tree = tree
	if f == command {
		if err := p.scanShell(); err != nil {
			return nil, err
		}
	}
	p.uses.Sole = p.sole(tree.Root)
	if err := p.list(tree.Root, true); err != nil {
		return nil, err
	}
	p.optional()
	return p, nil
}

// sole returns the path if printing it is the template's only action.
func (p *program) sole(root *parse.ListNode) *Reference {
	var only *parse.ActionNode
	for _, n := range root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			if len(bytes.TrimSpace(n.Text)) > 0 {
				return nil
			}
		case *parse.ActionNode:
			if only != nil || len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
				return nil
			}
			only = n
		default:
			return nil
		}
	}
	if only == nil {
		return nil
	}
	field, ok := only.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok {
		return nil
	}
	ref := p.reference(start(field.Pos, field.Ident), p.decoded(field.Ident))
	return &ref
}

// treeName is the name of the template in messages of text/template.
const treeName = "t"

func (p *program) fail(at parse.Pos, msg, hint string) *Error {
	line, column := p.place(int(at))
	return &Error{Name: p.name, Line: line, Column: column, Msg: msg, Hint: hint}
}

var (
	message = lazyregexp.New(`(?s)^template: t:(\d+):(?:(\d+):)? (?:executing "t" at <.*?>: )?(.*)$`)
	noFunc  = lazyregexp.New(`function "(\w+)" not defined`)
	inFunc  = lazyregexp.New(`^error calling (\w+: )`)
	inOurs  = lazyregexp.New(`^(?:_\w+|include): `)
)

// fromTemplate converts an error of text/template to an *Error. It takes the position from
// the message.
func (p *program) fromTemplate(err error) *Error {
	m := message.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Name: p.name, Line: 1, Msg: p.decode(err.Error())}
	}
	e := &Error{Name: p.name, Msg: inOurs.ReplaceAllString(inFunc.ReplaceAllString(p.decode(m[3]), "$1"), "")}
	e.Line, _ = strconv.Atoi(m[1])
	if column, err := strconv.Atoi(m[2]); err == nil {
		e.Line, e.Column = p.place(p.offset(e.Line, column))
	}
	if f := noFunc.FindStringSubmatch(e.Msg); f != nil {
		e.Msg = fmt.Sprintf("unknown function %q", f[1])
		e.Hint = known(f[1], functionNames)
	}
	return e
}

// known returns a hint for an unknown word.
func known(word string, words []string) string {
	if hint := didyoumean.Hint(word, words); hint != "" {
		return hint
	}
	if len(words) == 0 || len(words) > 24 {
		return ""
	}
	return "known: " + strings.Join(words, ", ")
}

// list rewrites nodes. root reports whether the dot is the whole data.
func (p *program) list(l *parse.ListNode, root bool) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := p.node(n, root); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) node(n parse.Node, root bool) error {
	switch n := n.(type) {
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			defer p.append(n.Pipe, "_put")
		}
		return p.pipe(n.Pipe, root)
	case *parse.IfNode:
		return p.branch(&n.BranchNode, root, root)
	case *parse.WithNode:
		return p.branch(&n.BranchNode, root, false)
	case *parse.RangeNode:
		defer p.append(n.Pipe, "_each")
		return p.branch(&n.BranchNode, root, false)
	case *parse.TemplateNode:
		return p.fail(n.Pos, "template does not work here", `put it into a prompt and {{include "name"}} it`)
	}
	return nil
}

func (p *program) branch(b *parse.BranchNode, root, inner bool) error {
	if b.NodeType != parse.NodeRange {
		p.recordTested(b.Pipe)
	}
	if err := p.pipe(b.Pipe, root); err != nil {
		return err
	}
	if err := p.list(b.List, inner); err != nil {
		return err
	}
	return p.list(b.ElseList, root)
}

// append appends a call of a function to a pipe.
func (p *program) append(pipe *parse.PipeNode, function string) {
	pipe.Cmds = append(pipe.Cmds, &parse.CommandNode{
		NodeType: parse.NodeCommand, Pos: pipe.Pos, Args: []parse.Node{p.ident(function, pipe.Pos)},
	})
}

func (p *program) ident(name string, at parse.Pos) parse.Node {
	return parse.NewIdentifier(name).SetTree(p.tree).SetPos(at)
}

func (p *program) pipe(pipe *parse.PipeNode, root bool) error {
	for i, c := range pipe.Cmds {
		if next := i + 1; next < len(pipe.Cmds) && len(pipe.Cmds[next].Args) == 2 && called(pipe.Cmds[next], "default") {
			p.recordTested(c)
		}
		if err := p.call(c, i > 0, root); err != nil {
			return err
		}
		for i, arg := range c.Args {
			replaced, err := p.operand(arg, root)
			if err != nil {
				return err
			}
			c.Args[i] = replaced
		}
	}
	return nil
}

// call handles calls of functions with special rules. piped reports whether
// the call receives the preceding value.
func (p *program) call(c *parse.CommandNode, piped, root bool) error {
	for i, arg := range c.Args {
		function, ok := arg.(*parse.IdentifierNode)
		switch {
		case !ok:
		case function.Ident == "default" && i == 0 && len(c.Args) == 3:
			p.recordTested(c.Args[2])
		case function.Ident == "raw":
			p.uses.Raw = append(p.uses.Raw, p.reference(function.Pos, nil))
		case function.Ident == "include" && p.form != prompt:
			return p.fail(function.Pos, "include works in prompts only", "")
		case function.Ident == "include":
			if i > 0 || piped {
				return p.includeFault(function.Pos)
			}
			return p.include(c, root)
		}
	}
	return nil
}

func (p *program) reference(at parse.Pos, path []string) Reference {
	line, column := p.place(int(at))
	return Reference{Path: path, Line: line, Column: column}
}

// operand returns the rewritten form of an operand.
func (p *program) operand(n parse.Node, root bool) (parse.Node, error) {
	switch n := n.(type) {
	case *parse.FieldNode:
		if key, ok := p.keyOf(n.Ident[0]); ok {
			return nil, p.fail(n.Pos, fmt.Sprintf("%s= does not work here", key), "only include takes parameters: "+includeHint)
		}
		base := "the data"
		if !root {
			base = "the current value"
		}
		number := p.access(n, start(n.Pos, n.Ident), n.Ident, base, root)
		return p.get(&parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, start(n.Pos, n.Ident), number), nil
	case *parse.VariableNode:
		if len(n.Ident) == 1 {
			return n, nil
		}
		base := &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}
		return p.get(base, n.Pos, p.access(n, n.Pos, n.Ident[1:], n.Ident[0], n.Ident[0] == "$")), nil
	case *parse.ChainNode:
		base, err := p.operand(n.Node, root)
		return p.get(base, n.Pos, p.access(n, n.Pos, n.Field, "the value", false)), err
	case *parse.PipeNode:
		return n, p.pipe(n, root)
	}
	return n, nil
}

// start returns the start position of a chain of fields: text/template reports the position of
// its second field.
func start(at parse.Pos, fields []string) parse.Pos {
	if len(fields) > 1 {
		at -= parse.Pos(len(fields[0]) + 1)
	}
	return at
}

// decoded returns the names of a path as written in the template.
func (p *program) decoded(fields []string) []string {
	path := slices.Clone(fields)
	for i := range path {
		path[i] = p.decode(path[i])
	}
	return path
}

// access records the use of a path. root reports whether it starts at the whole
// data.
func (p *program) access(n parse.Node, at parse.Pos, fields []string, base string, root bool) int {
	ref := p.reference(at, p.decoded(fields))
	ref.Tested = p.tested[n]
	if root {
		p.uses.Data = append(p.uses.Data, ref)
	}
	p.gets = append(p.gets, access{ref, base, root})
	return len(p.gets) - 1
}

// get returns a call of _get, in parentheses.
func (p *program) get(base parse.Node, at parse.Pos, number int) parse.Node {
	c := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{
		p.ident("_get", at), base,
		&parse.NumberNode{NodeType: parse.NodeNumber, Pos: at, IsInt: true, Int64: int64(number), Text: strconv.Itoa(number)},
	}}
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{c}}
}
