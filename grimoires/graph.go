package grimoires

import (
	"fmt"
	"slices"
	"strings"
)

// Graph is a grimoire as nodes and the ways between them.
type Graph struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is a step, or an end of the run. The node of a loop is the place where it
// is decided whether there is another iteration.
type Node struct {
	ID   string `json:"id"`   // the step's name; an end's begins with a colon
	Type string `json:"type"` // the step's; start or end
	Loop string `json:"loop,omitempty"`
	Text string `json:"text,omitempty"` // what the step does, in words
}

// Edge is a way from one node to another.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"` // when it is taken; empty: always, or when the step succeeds
}

// The nodes that are no steps. No step's name has a colon.
const (
	startNode     = ":start"
	completedNode = ":completed"
	blockedNode   = ":blocked"
	failedNode    = ":failed"
)

// Graph returns the graph of the grimoire.
func (g *Grimoire) Graph() Graph {
	b := &grapher{Graph: Graph{Name: g.Name, Nodes: []Node{{ID: startNode, Type: "start"}}}}
	b.enter(startNode, "", g.Steps, 0, completedNode)
	b.steps(g.Steps, "", completedNode, "")
	for _, end := range []string{completedNode, blockedNode, failedNode} {
		for _, e := range b.Edges {
			if e.To == end {
				b.Nodes = append(b.Nodes, Node{ID: end, Type: "end"})
				break
			}
		}
	}
	return b.Graph
}

// grapher collects nodes and edges.
type grapher struct{ Graph }

func (b *grapher) edge(from, to string, labels ...string) {
	var words []string
	for _, label := range labels {
		if label != "" {
			words = append(words, label)
		}
	}
	b.Edges = append(b.Edges, Edge{from, to, strings.Join(words, ", ")})
}

// enter draws the ways to the step at an index: past those whose condition does
// not hold, in the end to after.
func (b *grapher) enter(from, label string, steps []Step, index int, after string) {
	for _, s := range steps[min(index, len(steps)):] {
		if s.When == "" {
			b.edge(from, s.Name, label)
			return
		}
		b.edge(from, s.Name, label, "when "+s.When)
		label = strings.TrimPrefix(label+", else", ", ")
	}
	b.edge(from, after, label)
}

// way draws the ways from a node to what comes next.
type way func(from, label string)

// steps draws the steps of a list. loop is the one they are in; after is where
// it goes on after the last of them, outside where on_success: exit_loop leads.
func (b *grapher) steps(steps []Step, loop, after, outside string) {
	for i, s := range steps {
		b.Nodes = append(b.Nodes, Node{ID: s.Name, Type: s.kind(), Loop: loop, Text: s.words()})
		next := func(from, label string) { b.enter(from, label, steps, i+1, after) }
		succeeds := next
		if s.ExitLoop {
			succeeds = func(from, label string) { b.edge(from, outside, label, "exit loop") }
		}
		switch {
		case s.Loop != nil:
			b.loop(s, succeeds)
			continue
		case s.AgentLoop != nil:
			b.agentLoop(s, succeeds, next)
			continue
		}
		succeeds(s.Name, "")
		b.failure(s, next)
	}
}

// failure draws where a step leads that fails.
func (b *grapher) failure(s Step, next way) {
	fails := "fails"
	if s.Retries > 0 {
		b.edge(s.Name, s.Name, "fails, "+times(s.Retries))
		fails = "fails again"
	}
	switch s.OnFail {
	case Continue:
		next(s.Name, fails)
	case Fail:
		b.edge(s.Name, failedNode, fails)
	default:
		b.edge(s.Name, blockedNode, fails)
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("up to %d times", n)
}

// loop draws a loop: its node, to which its last step returns, and a node for
// leaving it, to which those of its steps lead that exit it.
func (b *grapher) loop(s Step, succeeds way) {
	b.enter(s.Name, "iteration", s.Loop.Steps, 0, s.Name)
	b.exhausted(s.Name, fmt.Sprintf("after %d iterations", s.Loop.MaxIterations), s.Loop.OnMaxIterations, succeeds)
	left := s.Name + ":left"
	if slices.ContainsFunc(s.Loop.Steps, func(inner Step) bool { return inner.ExitLoop }) {
		b.Nodes = append(b.Nodes, Node{ID: left, Type: "left", Loop: s.Name})
		succeeds(left, "")
	}
	b.steps(s.Loop.Steps, s.Name, s.Name, left)
}

// exhausted draws where a loop leads that has come to its limit.
func (b *grapher) exhausted(from, spent string, on OnFail, succeeds way) {
	switch on {
	case Continue:
		succeeds(from, spent)
	case Fail:
		b.edge(from, failedNode, spent)
	default:
		b.edge(from, blockedNode, spent)
	}
}

// agentLoop draws an agent-loop: its node, where a round begins, and a node each
// for the review, the arbiter and the agent that fixes.
func (b *grapher) agentLoop(s Step, succeeds, next way) {
	l := s.AgentLoop
	review, arbiter, fix := s.Name+"/review", s.Name+"/arbiter", s.Name+"/fix"
	b.enter(s.Name, "round", l.Steps, 0, review)
	b.steps(l.Steps, s.Name, review, "")
	b.Nodes = append(b.Nodes,
		Node{ID: review, Type: reviewType, Loop: s.Name, Text: "review by " + judgeNames(l.Reviewers)},
		Node{ID: arbiter, Type: "arbiter", Loop: s.Name, Text: "arbiter " + l.Arbiter.Name},
		Node{ID: fix, Type: agentType, Loop: s.Name, Text: "agent, " + promptWords(l.Fix)})
	succeeds(review, "pass")
	b.edge(review, arbiter, "fail")
	succeeds(arbiter, "not worth another round")
	b.edge(arbiter, fix, "go on")
	b.edge(fix, s.Name)
	spent := fmt.Sprintf("go on after %d rounds", l.MaxIterations)
	if l.Patience > 0 {
		spent += fmt.Sprintf(", or %s without fewer findings", plural(l.Patience, "round"))
	}
	b.exhausted(arbiter, spent, l.OnMaxIterations, succeeds)
	b.failure(s, next)
}

func plural(n int, word string) string {
	if n == 1 {
		return "one " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
