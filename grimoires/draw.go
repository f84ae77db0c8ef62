package grimoires

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/text/oneline"
)

// maxText is the maximum length of a text in a drawing, in characters.
const maxText = 80

// syntax contains the formats for the parts of a graph in a language. The arguments for nodes and groups
// are a number, a quoted ID and a quoted label. Those for edges are the number and the ID of each end, and
// a label.
type syntax struct {
	end, step, loop         string // nodes
	group, close            string
	edge, labelled, failing string
	newline                 string
	escape                  *strings.Replacer
}

var mermaid = syntax{
	end:      `n%[1]d([%[3]s])`,
	step:     `n%[1]d[%[3]s]`,
	loop:     `n%[1]d{{%[3]s}}`,
	group:    `subgraph gn%[1]d [%[3]s]`,
	close:    `end`,
	edge:     `n%[1]d --> n%[3]d`,
	labelled: `n%[1]d -->|%[5]s| n%[3]d`,
	failing:  `n%[1]d -.->|%[5]s| n%[3]d`,
	newline:  `<br/>`,
	escape:   strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "#96;", "#", "#35;"),
}

var dot = syntax{
	end:      `%[2]s [shape=oval, label=%[3]s];`,
	step:     `%[2]s [shape=box, label=%[3]s];`,
	loop:     `%[2]s [shape=hexagon, label=%[3]s];`,
	group:    `subgraph %[2]s { label=%[3]s;`,
	close:    `}`,
	edge:     `%[2]s -> %[4]s [label=%[5]s];`,
	labelled: `%[2]s -> %[4]s [label=%[5]s];`,
	failing:  `%[2]s -> %[4]s [label=%[5]s, style=dashed];`,
	newline:  `\n`,
	escape:   strings.NewReplacer(`\`, `\\`, `"`, `\"`),
}

// Mermaid returns the graph as a flowchart for Mermaid.
func (g Graph) Mermaid() string { return "flowchart TD\n" + g.draw(mermaid) }

// Dot returns the graph in the language of Graphviz.
func (g Graph) Dot() string {
	return "digraph " + dot.quote(g.Name) + " {\n" + g.draw(dot) + "}\n"
}

func (g Graph) draw(s syntax) string {
	numbers := map[string]int{}
	for i, n := range g.Nodes {
		numbers[n.ID] = i
	}
	var b strings.Builder
	g.drawNodes(&b, s, numbers, "", "  ")
	for _, e := range g.Edges {
		format := s.edge
		switch {
		case strings.Contains(e.Label, "fails"):
			format = s.failing
		case e.Label != "":
			format = s.labelled
		}
		fmt.Fprintf(&b, "  "+format+"\n", numbers[e.From], s.quote(e.From), numbers[e.To], s.quote(e.To), s.quote(e.Label))
	}
	return b.String()
}

// drawNodes draws the nodes inside a loop, and inner loops as groups.
func (g Graph) drawNodes(b *strings.Builder, s syntax, numbers map[string]int, loop, indent string) {
	for _, n := range g.Nodes {
		if n.Loop != loop {
			continue
		}
		draw := func(format, id string, label ...string) {
			fmt.Fprintf(b, indent+format+"\n", numbers[n.ID], s.quote(id), s.quote(label...))
		}
		switch n.Type {
		case "start", "end":
			draw(s.end, n.ID, strings.TrimPrefix(n.ID, ":"))
		case "left":
			draw(s.loop, n.ID, "out of "+n.Loop)
		case (*Loop)(nil).Type(), (*AgentLoop)(nil).Type():
			draw(s.group, "cluster "+n.ID, "loop "+n.ID)
			draw("  "+s.loop, n.ID, n.ID, n.Text)
			g.drawNodes(b, s, numbers, n.ID, indent+"  ")
			b.WriteString(indent + s.close + "\n")
		default:
			draw(s.step, n.ID, n.ID, n.Text)
		}
	}
}

func (s syntax) quote(lines ...string) string {
	for i, line := range lines {
		lines[i] = s.escape.Replace(oneline.Clip(line, maxText))
	}
	return `"` + strings.Join(lines, s.newline) + `"`
}
