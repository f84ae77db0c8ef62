package grimoires

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const drawn = `
name: drawn
description: Every way that there is
budget: {usd: 5}
steps:
  - {name: first, type: script, command: 'echo "a#" <b >c {{.task.id}}', retries: 2, backoff: 10s, on_fail: fail, budget: {turns: 3}}
  - {name: maybe, type: agent, prompt: default, when: "{{.first.failed}}", on_fail: continue}
  - {name: perhaps, type: agent, prompt: default, when: "{{.maybe.failed}}"}
  - name: outer
    type: loop
    on_max_iterations: continue
    steps:
      - name: inner
        type: loop
        max_iterations: 2
        steps:
          - {name: look, type: script, command: ls, on_success: exit_loop, on_fail: continue}
          - {name: fix, type: agent, prompt: default, when: "{{.look.failed}}", retries: 1}
      - {name: note, type: script, command: ls, on_success: exit_loop}
  - {name: land, type: merge}
`

func TestGraph(t *testing.T) {
	g, err := Parse("f.yaml", []byte(drawn))
	if err != nil {
		t.Fatal(err)
	}
	var edges []string
	for _, e := range g.Graph().Edges {
		edges = append(edges, fmt.Sprintf("%s > %s (%s)", e.From, e.To, e.Label))
	}
	want := []string{
		":start > first ()",
		"first > maybe (when {{.first.failed}})",
		"first > perhaps (else, when {{.maybe.failed}})",
		"first > outer (else, else)",
		"first > first (fails, up to 2 times)",
		"first > :failed (fails again)",
		"maybe > perhaps (when {{.maybe.failed}})",
		"maybe > outer (else)",
		"maybe > perhaps (fails, when {{.maybe.failed}})",
		"maybe > outer (fails, else)",
		"perhaps > outer ()",
		"perhaps > :blocked (fails)",
		"outer > inner (iteration)",
		"outer > land (after 3 iterations)",
		"outer:left > land ()",
		"inner > look (iteration)",
		"inner > :blocked (after 2 iterations)",
		"inner:left > note ()",
		"look > inner:left (exit loop)",
		"look > fix (fails, when {{.look.failed}})",
		"look > inner (fails, else)",
		"fix > inner ()",
		"fix > fix (fails, once)",
		"fix > :blocked (fails again)",
		"note > outer:left (exit loop)",
		"note > :blocked (fails)",
		"land > :completed ()",
		"land > :blocked (fails)",
	}
	if !slices.Equal(edges, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(edges, "\n"), strings.Join(want, "\n"))
	}
}

// In every drawing, every edge connects two drawn nodes, groups are closed, and steps can be reached.
func TestDrawings(t *testing.T) {
	l := NewLibrary(filepath.Join("testdata", "original"), "")
	names, err := l.Names()
	if err != nil {
		t.Fatal(err)
	}
	all := []*Grimoire{}
	for _, name := range names {
		g, err := l.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	g, err := Parse("f.yaml", []byte(drawn))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range append(all, g) {
		graph := g.Graph()
		for s := range g.All() {
			if !slices.ContainsFunc(graph.Edges, func(e Edge) bool { return e.To == s.Name && e.From != s.Name }) {
				t.Errorf("%s: nothing leads to %s", g.Name, s.Name)
			}
			if !slices.ContainsFunc(graph.Nodes, func(n Node) bool { return n.ID == s.Name && n.Text != "" }) {
				t.Errorf("%s: %s is not drawn", g.Name, s.Name)
			}
		}
		mermaid, dot := graph.Mermaid(), graph.Dot()
		complete(t, g.Name+" mermaid", mermaid, `(?m)^ +(n\d+)[\[({]`, `(?m)^  (n\d+) -\.?->(?:\|"[^"|<>]*"\|)? (n\d+)$`, len(graph.Nodes), len(graph.Edges))
		complete(t, g.Name+" dot", dot, `(?m)^ +("[^"]*") \[shape=`, `(?m)^  ("[^"]*") -> ("[^"]*") \[label="(?:[^"\\]|\\.)*"(?:, style=dashed)?\];$`, len(graph.Nodes), len(graph.Edges))
		if strings.Count(mermaid, "subgraph ") != len(regexp.MustCompile(`(?m)^ *end$`).FindAllString(mermaid, -1)) {
			t.Errorf("%s: groups of Mermaid do not close", g.Name)
		}
		if strings.Count(dot, "subgraph ")+1 != len(regexp.MustCompile(`(?m)^ *}$`).FindAllString(dot, -1)) {
			t.Errorf("%s: groups of dot do not close", g.Name)
		}
	}
}

func complete(t *testing.T, name, text, node, edge string, nodes, edges int) {
	t.Helper()
	declared := map[string]bool{}
	for _, m := range regexp.MustCompile(node).FindAllStringSubmatch(text, -1) {
		declared[m[1]] = true
	}
	found := regexp.MustCompile(edge).FindAllStringSubmatch(text, -1)
	if len(declared) != nodes || len(found) != edges {
		t.Errorf("%s: %d nodes and %d edges, want %d and %d\n%s", name, len(declared), len(found), nodes, edges, text)
	}
	for _, m := range found {
		if !declared[m[1]] || !declared[m[2]] {
			t.Errorf("%s: %s", name, m[0])
		}
	}
}

// nodeTexts lists the nodes of a graph, one per line, with their loops.
func nodeTexts(g Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "%s/%s %s: %s\n", n.Loop, n.ID, n.Type, n.Text)
	}
	return b.String()
}

func TestNodes(t *testing.T) {
	g, err := Parse("f.yaml", []byte(drawn))
	if err != nil {
		t.Fatal(err)
	}
	want := `/:start start: 
/first script: script, echo "a#" <b >c {{.task.id}}, 5m at most, 3 turns at most
/maybe agent: agent, prompt default, 15m at most
/perhaps agent: agent, prompt default, 15m at most
/outer loop: loop, at most 3 iterations
outer/outer:left left: 
outer/inner loop: loop, at most 2 iterations
inner/inner:left left: 
inner/look script: script, ls, 5m at most
inner/fix agent: agent, prompt default, 15m at most
outer/note script: script, ls, 5m at most
/land merge: merge, squash, after a review
/:completed end: 
/:blocked end: 
/:failed end: 
`
	if got := nodeTexts(g.Graph()); got != want {
		t.Errorf("got\n%s", got)
	}
}

// YAML includes all defaults, and parses to the same grimoire.
func TestYAML(t *testing.T) {
	g, err := Parse("f.yaml", []byte(drawn))
	if err != nil {
		t.Fatal(err)
	}
	if text := throughYAML(t, g); !strings.Contains(text, "max_iterations: 3") {
		t.Errorf("a default is missing:\n%s", text)
	}
}

// throughYAML checks that a grimoire does not change when written as YAML and read. It returns the YAML.
func throughYAML(t *testing.T, g *Grimoire) string {
	t.Helper()
	text, err := g.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(g.Source, text)
	if err != nil || !reflect.DeepEqual(again, g) {
		t.Errorf("%v\n%s", err, text)
	}
	return string(text)
}

func TestEntries(t *testing.T) {
	l, dir := files(t, map[string]string{
		"repo/.coven/grimoires/implement.yaml": named("implement"),
		"repo/.coven/grimoires/bad.yaml":       "name: bad",
		"repo/.coven/grimoires/twice.yaml":     named("twice"),
		"repo/.coven/grimoires/twice.yml":      named("twice"),
		"user/grimoires/implement.yml":         "not looked at",
		"user/grimoires/bad.yaml":              named("bad"),
	})
	all, err := l.Entries()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range all {
		got += fmt.Sprintf("%s|%s|%s|%s|%v\n", e.Name, e.Source, e.Description, strings.Join(e.Hides, ","), e.Err != nil)
	}
	got = strings.ReplaceAll(got, filepath.Join(dir, "user"), "USER")
	want := `bad|.coven/grimoires/bad.yaml||USER/grimoires/bad.yaml|true
implement|.coven/grimoires/implement.yaml||USER/grimoires/implement.yml,built in|false
none|built in|Just the agent||false
prepare-pr|built in|Implement, check and review, then write a pull request and wait||false
review-only|built in|Review a change that is there already (--base BRANCH), land nothing||false
spec-to-tasks|built in|Propose tasks for a specification (then coven task import)||false
twice|.coven/grimoires|||true
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
