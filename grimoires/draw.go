package grimoires

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/oneline"
)

// Tree returns the steps as an indented tree, a line each, with what they do and
// where they lead when that is not the next step.
func (g *Grimoire) Tree() string {
	var b strings.Builder
	b.WriteString(g.Name)
	if g.Description != "" {
		b.WriteString(": " + oneline.Of(g.Description))
	}
	most := duration(g.Timeout)
	if g.Budget != (budget.Amount{}) {
		most += ", " + g.Budget.String()
	}
	fmt.Fprintf(&b, " (%s at most)\n", most)
	branches(&b, g.Steps, "")
	return b.String()
}

func branches(b *strings.Builder, steps []Step, indent string) {
	for i, s := range steps {
		branch, below := "├─ ", "│  "
		if i == len(steps)-1 {
			branch, below = "└─ ", "   "
		}
		b.WriteString(indent + branch + s.Name + "  " + s.words())
		for _, note := range s.ways() {
			b.WriteString("; " + note)
		}
		b.WriteString("\n")
		branches(b, s.Inner(), indent+below)
	}
}

// kind is the type of a step as its file has it.
func (s Step) kind() string { return string(s.file().Type) }

// words describe what a step does.
func (s Step) words() string {
	var words []string
	switch {
	case s.Agent != nil:
		words = append(words, "agent", promptWords(s.Agent.Prompt))
		if s.Agent.Model != "" {
			words = append(words, s.Agent.Model)
		}
		if s.Agent.ExpectChanges {
			words = append(words, "must change something")
		}
	case s.Script != nil && s.Script.Checks:
		words = append(words, "script", "the checks")
	case s.Script != nil:
		words = append(words, "script", oneline.Clip(s.Script.Command, maxText))
	case s.Loop != nil:
		words = append(words, "loop", fmt.Sprintf("at most %d iterations", s.Loop.MaxIterations))
	case s.Review != nil:
		words = append(words, "review by "+judgeNames(s.Review.Reviewers))
	case s.AgentLoop != nil:
		words = append(words, "agent-loop", "review by "+judgeNames(s.AgentLoop.Reviewers), "arbiter "+s.AgentLoop.Arbiter.Name,
			"fixed with "+promptWords(s.AgentLoop.Fix), fmt.Sprintf("at most %d rounds", s.AgentLoop.MaxIterations))
	case s.Merge != nil && s.Merge.RequireReview:
		words = append(words, "merge", s.Merge.Strategy, "after a review")
	case s.Merge != nil:
		words = append(words, "merge", s.Merge.Strategy, "without a review")
	}
	if s.Timeout > 0 {
		words = append(words, duration(s.Timeout)+" at most")
	}
	if s.Budget != (budget.Amount{}) {
		words = append(words, s.Budget.String()+" at most")
	}
	return strings.Join(words, ", ")
}

func judgeNames(judges []Judge) string {
	var names []string
	for _, j := range judges {
		names = append(names, j.Name)
	}
	return strings.Join(names, " and ")
}

func promptWords(prompt string) string {
	if isInline(prompt) {
		return "a prompt of its own"
	}
	return "prompt " + strings.TrimSuffix(prompt, ".md")
}

// ways say when a step runs, and where it leads when that is not the next step.
func (s Step) ways() []string {
	var notes []string
	if s.When != "" {
		notes = append(notes, "when "+oneline.Clip(s.When, maxText))
	}
	if s.Retries > 0 {
		again := "fails: again, " + times(s.Retries)
		if s.Backoff > 0 {
			again += ", after " + duration(s.Backoff) + " and more"
		}
		notes = append(notes, again)
	}
	if s.OnFail != Block {
		notes = append(notes, "fails: "+string(s.OnFail))
	}
	if s.ExitLoop {
		notes = append(notes, "succeeds: exit loop")
	}
	if s.Loop != nil {
		notes = append(notes, "then "+string(s.Loop.OnMaxIterations))
	}
	if s.AgentLoop != nil {
		notes = append(notes, "then "+string(s.AgentLoop.OnMaxIterations))
	}
	return notes
}

// maxText is how much of a text a drawing shows, in characters.
const maxText = 80

// title is what a drawing writes into a node, a line each.
func (n Node) title() []string {
	switch n.Type {
	case "start", "end":
		return []string{strings.TrimPrefix(n.ID, ":")}
	case "left":
		return []string{"out of " + n.Loop}
	}
	return []string{n.ID, n.Text}
}

// Mermaid returns the graph as a flowchart for Mermaid.
func (g Graph) Mermaid() string {
	ids := map[string]string{}
	for i, n := range g.Nodes {
		ids[n.ID] = fmt.Sprintf("n%d", i)
	}
	quote := func(lines ...string) string {
		for i, line := range lines {
			lines[i] = strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "#", "#35;").Replace(oneline.Clip(line, maxText))
		}
		return `"` + strings.Join(lines, "<br/>") + `"`
	}
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	g.nodes(&b, "", "  ", drawing{
		node: func(n Node) string {
			open, end := "[", "]"
			switch n.Type {
			case "start", "end":
				open, end = "([", "])"
			case loopType, agentLoopType, "left":
				open, end = "{{", "}}"
			}
			return ids[n.ID] + open + quote(n.title()...) + end
		},
		open:  func(n Node) string { return "subgraph g" + ids[n.ID] + " [" + quote("loop "+n.ID) + "]" },
		close: "end",
	})
	for _, e := range g.Edges {
		arrow := "-->"
		if strings.Contains(e.Label, "fails") {
			arrow = "-.->"
		}
		if e.Label != "" {
			arrow += "|" + quote(e.Label) + "|"
		}
		fmt.Fprintf(&b, "  %s %s %s\n", ids[e.From], arrow, ids[e.To])
	}
	return b.String()
}

// Dot returns the graph in the language of Graphviz.
func (g Graph) Dot() string {
	quote := func(lines ...string) string {
		for i, line := range lines {
			lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(oneline.Clip(line, maxText))
		}
		return `"` + strings.Join(lines, `\n`) + `"`
	}
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", quote(g.Name))
	g.nodes(&b, "", "  ", drawing{
		node: func(n Node) string {
			shape := "box"
			switch n.Type {
			case "start", "end":
				shape = "oval"
			case loopType, agentLoopType, "left":
				shape = "hexagon"
			}
			return fmt.Sprintf("%s [shape=%s, label=%s];", quote(n.ID), shape, quote(n.title()...))
		},
		open: func(n Node) string {
			return fmt.Sprintf("subgraph %s { label=%s;", quote("cluster "+n.ID), quote("loop "+n.ID))
		},
		close: "}",
	})
	for _, e := range g.Edges {
		style := ""
		if strings.Contains(e.Label, "fails") {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", quote(e.From), quote(e.To), quote(e.Label), style)
	}
	b.WriteString("}\n")
	return b.String()
}

// drawing is how a language writes nodes and groups.
type drawing struct {
	node, open func(n Node) string
	close      string
}

// nodes writes the nodes of a loop, those of its loops in groups.
func (g Graph) nodes(b *strings.Builder, loop, indent string, d drawing) {
	for _, n := range g.Nodes {
		switch {
		case n.Loop != loop:
		case n.Type == loopType || n.Type == agentLoopType:
			fmt.Fprintf(b, "%s%s\n%s  %s\n", indent, d.open(n), indent, d.node(n))
			g.nodes(b, n.ID, indent+"  ", d)
			fmt.Fprintf(b, "%s%s\n", indent, d.close)
		default:
			fmt.Fprintf(b, "%s%s\n", indent, d.node(n))
		}
	}
}
