package tmpl

import "text/template/parse"

const (
	unquoteHint = "remove the quotes: coven quotes values itself"
	envHint     = `give the value to the step as env and write "$NAME"`
)

// shellWalk tracks the shell state through all branches of a template.
type shellWalk struct {
	program *program
	loops   []shellState // at the start of each open range
}

// scanShell returns an error for the first value in a place where shell quoting does not work.
func (p *program) scanShell() error {
	w := &shellWalk{program: p}
	_, err := w.list(p.tree.Root, shellState{})
	return err
}

func (w *shellWalk) list(l *parse.ListNode, s shellState) (shellState, error) {
	if l == nil {
		return s, nil
	}
	var err error
	for _, n := range l.Nodes {
		if s, err = w.node(n, s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (w *shellWalk) node(n parse.Node, s shellState) (shellState, error) {
	switch n := n.(type) {
	case *parse.TextNode:
		return s.text(n.Text), nil
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return s, nil
		}
		return w.value(n, s)
	case *parse.IfNode:
		return w.branch(&n.BranchNode, s)
	case *parse.WithNode:
		return w.branch(&n.BranchNode, s)
	case *parse.RangeNode:
		return w.loop(n, s)
	case *parse.BreakNode:
		return s, w.same(n.Pos, w.loops[len(w.loops)-1], s)
	case *parse.ContinueNode:
		return s, w.same(n.Pos, w.loops[len(w.loops)-1], s)
	}
	return s, nil
}

// value returns the state after a value.
func (w *shellWalk) value(n *parse.ActionNode, s shellState) (shellState, error) {
	msg, hint := s.refuse()
	if msg != "" {
		return s, w.program.fail(n.Pos, msg, hint)
	}
	s.before, s.letters, s.less, s.fresh, s.opened = word, s.letters+"?", false, false, false
	return s, nil
}

// refuse explains why a value is not allowed here. msg is empty if it is.
func (s shellState) refuse() (msg, hint string) {
	if s.unclear != "" {
		return "coven cannot tell how the shell reads a value here, because of " + s.unclear, envHint
	}
	switch s.mode() {
	case single, double, ansi:
		return "a value inside quotes could break out of them", unquoteHint
	case backquote:
		return "a value inside backquotes could break out of them", "write $(...)"
	case parameter, arithmetic:
		return "a value cannot be inside an expansion", envHint
	case remark:
		return "a value inside a comment could break out of it", "remove it"
	}
	switch {
	case s.escaped:
		return "a backslash before a value would undo its quoting", "remove the backslash"
	case s.dollar:
		return "a $ before a value would change its quoting", "remove the $"
	}
	return "", ""
}

func (w *shellWalk) branch(b *parse.BranchNode, s shellState) (shellState, error) {
	yes, err := w.list(b.List, s)
	if err != nil {
		return s, err
	}
	no, err := w.list(b.ElseList, s)
	if err != nil {
		return s, err
	}
	return yes.merge(no), w.same(b.Pos, yes, no)
}

func (w *shellWalk) loop(n *parse.RangeNode, s shellState) (shellState, error) {
	s.before, s.letters = either, "?" // from the previous round, or from before the loop
	w.loops = append(w.loops, s)
	round, err := w.list(n.List, s)
	w.loops = w.loops[:len(w.loops)-1]
	if err != nil {
		return s, err
	}
	if err := w.same(n.Pos, s, round); err != nil {
		return s, err
	}
	otherwise, err := w.list(n.ElseList, s)
	if err != nil {
		return s, err
	}
	return round.merge(otherwise).merge(s), w.same(n.Pos, s, otherwise)
}

// same returns an error unless two branches of the template leave the same constructs open.
func (w *shellWalk) same(at parse.Pos, a, b shellState) error {
	a.before, a.letters = b.before, b.letters
	if a == b {
		return nil
	}
	return w.program.fail(at, "close quotes and parentheses in the branch that opens them", "")
}

// merge merges the states after two branches that leave the same constructs open.
func (s shellState) merge(other shellState) shellState {
	if s.before != other.before {
		s.before = either
	}
	if s.letters != other.letters {
		s.letters = "?"
	}
	return s
}
