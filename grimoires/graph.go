package grimoires

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Graph represents a grimoire as nodes and edges.
type Graph struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Edges []Edge `json:"edges"`
}

// Node is a step, or the start or an end of the run. The node of a loop represents the decision about
// another iteration.
type Node struct {
	ID   string `json:"id"`   // name of the step; that of the start or an end begins with a colon
	Type string `json:"type"` // type of the step; or start or end
	Loop string `json:"loop,omitempty"`
	Text string `json:"text,omitempty"` // description of the step
}

// Edge leads from one node to another.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label,omitempty"` // condition; empty for always, or for success of the step
}

// The nodes that are not steps. Names of steps contain no colon.
const (
	startNode     = ":start"
	completedNode = ":completed"
	blockedNode   = ":blocked"
	failedNode    = ":failed"
)

// Graph returns the graph of the grimoire.
func (g *Grimoire) Graph() Graph {
	b := &Graph{Name: g.Name, Nodes: []Node{{ID: startNode, Type: "start"}}}
	b.enter(startNode, "", g.Steps, completedNode)
	b.steps(g.Steps, "", completedNode, "")
	for _, end := range []string{completedNode, blockedNode, failedNode} {
		if slices.ContainsFunc(b.Edges, func(e Edge) bool { return e.To == end }) {
			b.Nodes = append(b.Nodes, Node{ID: end, Type: "end"})
		}
	}
	return *b
}

func (b *Graph) edge(from, to string, labels ...string) {
	labels = slices.DeleteFunc(labels, func(label string) bool { return label == "" })
	b.Edges = append(b.Edges, Edge{from, to, strings.Join(labels, ", ")})
}

// enter adds the edges to the first step whose condition is true. after is the node for the case that none
// is.
func (b *Graph) enter(from, label string, steps []Step, after string) {
	for _, s := range steps {
		if s.When == "" {
			after = s.Name
			break
		}
		b.edge(from, s.Name, label, "when "+s.When)
		label = strings.TrimPrefix(label+", else", ", ")
	}
	b.edge(from, after, label)
}

// follow adds the edges from a node to the next one.
type follow func(from, label string)

// steps adds a list of steps, which are in loop. after is the node after the last step, and outside is the
// node for on_success: exit_loop.
func (b *Graph) steps(steps []Step, loop, after, outside string) {
	for i, s := range steps {
		b.Nodes = append(b.Nodes, Node{ID: s.Name, Type: s.Kind.Type(), Loop: loop, Text: s.text()})
		next := func(from, label string) { b.enter(from, label, steps[i+1:], after) }
		succeeds := next
		if s.ExitLoop {
			succeeds = func(from, label string) { b.edge(from, outside, label, "exit loop") }
		}
		switch k := s.Kind.(type) {
		case *Loop:
			b.loop(s.Name, k, succeeds)
			continue // a loop fails only because of its limit
		case *AgentLoop:
			b.agentLoop(s.Name, k, succeeds)
		default:
			succeeds(s.Name, "")
		}
		fails := "fails"
		if s.Retries > 0 {
			b.edge(s.Name, s.Name, "fails, "+times(s.Retries))
			fails = "fails again"
		}
		b.fail(s.Name, fails, s.OnFail, next)
	}
}

// fail adds the edge for a failure, or for a loop that has reached its limit.
func (b *Graph) fail(from, label string, on OnFail, next follow) {
	switch on {
	case Continue:
		next(from, label)
	case Fail:
		b.edge(from, failedNode, label)
	default:
		b.edge(from, blockedNode, label)
	}
}

// loop adds the steps of a loop. If one of them can exit the loop, it also adds a node for the exit.
func (b *Graph) loop(name string, l *Loop, succeeds follow) {
	b.enter(name, "iteration", l.Steps, name)
	b.fail(name, fmt.Sprintf("after %d iterations", l.MaxIterations), l.OnMaxIterations, succeeds)
	left := name + ":left"
	if slices.ContainsFunc(l.Steps, func(inner Step) bool { return inner.ExitLoop }) {
		b.Nodes = append(b.Nodes, Node{ID: left, Type: "left", Loop: name})
		succeeds(left, "")
	}
	b.steps(l.Steps, name, name, left)
}

// agentLoop adds the steps of an agent-loop, and nodes for the review, the arbiter, and the agent that
// fixes the findings.
func (b *Graph) agentLoop(name string, l *AgentLoop, succeeds follow) {
	review, arbiter, fix := name+"/review", name+"/arbiter", name+"/fix"
	b.enter(name, "round", l.Steps, review)
	b.steps(l.Steps, name, review, "")
	b.Nodes = append(b.Nodes,
		Node{ID: review, Type: "review", Loop: name, Text: "review by " + reviewerNames(l.Reviewers)},
		Node{ID: arbiter, Type: "arbiter", Loop: name, Text: "arbiter " + l.Arbiter.Name},
		Node{ID: fix, Type: "agent", Loop: name, Text: "agent, " + promptText(l.Fix)})
	succeeds(review, "pass")
	b.edge(review, arbiter, "fail")
	succeeds(arbiter, "not worth another round")
	b.edge(arbiter, fix, "go on")
	b.edge(fix, name)
	limit := "go on after " + oneline.Count(l.MaxIterations, "round")
	if l.Patience > 0 {
		limit += ", or " + oneline.Count(l.Patience, "round") + " without fewer findings"
	}
	b.fail(arbiter, limit, l.OnMaxIterations, succeeds)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("up to %d times", n)
}

// text describes the step.
func (s Step) text() string {
	words := s.Kind.words()
	if s.Timeout > 0 {
		words = append(words, yamldoc.FormatDuration(s.Timeout)+" at most")
	}
	if s.Budget != (budget.Amount{}) {
		words = append(words, s.Budget.String()+" at most")
	}
	return strings.Join(words, ", ")
}

func reviewerNames(reviewers []Reviewer) string {
	var names []string
	for _, v := range reviewers {
		names = append(names, v.Name)
	}
	return strings.Join(names, " and ")
}

func promptText(prompt string) string {
	if isInline(prompt) {
		return "a prompt of its own"
	}
	return "prompt " + strings.TrimSuffix(prompt, ".md")
}
