package grimoires

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/formats/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The example of rules is correct, and every key is described.
func TestMatchersPage(t *testing.T) {
	text := page(t, "grimoire-matchers.md")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("no examples")
	}
	for _, b := range blocks {
		l, _ := files(t, map[string]string{"repo/.coven/grimoire-matchers.yaml": b[1]})
		if _, err := l.Matchers(); err != nil {
			t.Errorf("%v\nin\n%s", err, b[1])
		}
	}
	l, _ := files(t, map[string]string{"repo/.coven/grimoire-matchers.yaml": "x: y\nrules: [{x: y}]"})
	_, err := l.Matchers()
	keys := []string{"min", "max"}
	for _, m := range regexp.MustCompile(`known: ([^)]*)`).FindAllStringSubmatch(err.Error(), -1) {
		keys = append(keys, strings.Split(m[1], ", ")...)
	}
	if len(keys) < 12 {
		t.Fatalf("keys: %v", keys)
	}
	for _, key := range keys {
		if !strings.Contains(text, "`"+key+"`") {
			t.Errorf("%s is not described", key)
		}
	}
}

// The examples of prompts are correct for a step that any grimoire can have.
func TestPromptPage(t *testing.T) {
	text := page(t, "prompt.md")
	blocks := regexp.MustCompile("(?s)```md\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d examples", len(blocks))
	}
	l, _ := files(t, map[string]string{
		"repo/.coven/prompts/checklist.md": blocks[2][1],
		"repo/.coven/prompts/one.md":       blocks[0][1],
		"repo/.coven/prompts/two.md":       blocks[1][1],
		"repo/.coven/grimoires/g.yaml":     "name: g\nsteps: [{name: a, type: agent, prompt: one}, {name: b, type: agent, prompt: two}]\n",
	})
	g, err := l.Load("g")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Freeze(g, nil)
	if err != nil {
		t.Fatal(err)
	}
	task := TaskData(Task{ID: "t-1", Title: "T", Acceptance: "- one\n- two"})
	got, err := p.RenderPrompt("two", map[string]any{"task": task})
	once := "## TO DO\n\n- one\n- two\n(of t-1)\n"
	if err != nil || strings.ReplaceAll(got, once, "X") != "X\nX\n" {
		t.Errorf("got %s, %v", got, err)
	}
	names, err := l.PromptNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.Contains([]string{"one", "two"}, name) && !strings.Contains(text, "`"+name+"`") && name != "checklist" {
			t.Errorf("%s is not described", name)
		}
	}
}
