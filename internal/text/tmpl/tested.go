package tmpl

import "text/template/parse"

// recordTested records the paths in a prompt that are tested by a condition or default: single
// paths, and operands of and, or and not.
func (p *program) recordTested(n parse.Node) {
	if p.form != prompt {
		return
	}
	switch n := n.(type) {
	case *parse.FieldNode, *parse.VariableNode:
		if p.tested == nil {
			p.tested = map[parse.Node]bool{}
		}
		p.tested[n] = true
	case *parse.PipeNode:
		if len(n.Cmds) == 1 {
			p.recordTested(n.Cmds[0])
		}
	case *parse.CommandNode:
		args := n.Args
		if called(n, "and") || called(n, "or") || called(n, "not") {
			args = args[1:]
		} else if len(args) > 1 {
			return
		}
		for _, arg := range args {
			p.recordTested(arg)
		}
	}
}

// called reports whether a command calls a function.
func called(c *parse.CommandNode, function string) bool {
	name, ok := c.Args[0].(*parse.IdentifierNode)
	return ok && name.Ident == function
}

// optional makes a tested name optional everywhere in the prompt.
func (p *program) optional() {
	names := map[string]bool{}
	for _, use := range p.uses.Data {
		if use.Tested && len(use.Path) == 1 {
			names[use.Path[0]] = true
		}
	}
	for i, use := range p.uses.Data {
		p.uses.Data[i].Tested = use.Tested || names[use.Path[0]]
	}
	for i, use := range p.gets {
		p.gets[i].Tested = use.Tested || use.root && names[use.Path[0]]
	}
}
