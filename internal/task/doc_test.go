package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples in the documentation can be read and written.
func TestDocumentedLines(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats", "tasks.md"))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for i, part := range strings.Split(string(text), "```") {
		if example, ok := strings.CutPrefix(part, "jsonl\n"); ok && i%2 == 1 {
			lines.WriteString(example)
		}
	}
	f := tracker(t, lines.String())
	all, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(all); got != "app-7k2m app-9q1c app-x3d0 app-c5vt" {
		t.Errorf("documented tasks: %s", got)
	}
	if ready, err := f.Ready(t.Context()); err != nil || ids(ready) != "app-7k2m" {
		t.Errorf("ready: %s, %v", ids(ready), err)
	}
	written, err := New{
		Title: "Rate-limit log-ins", Description: "Five a minute.", Acceptance: []string{"the sixth gets 429"},
		Priority: 2, Labels: []string{"auth"}, After: []string{"app-7k2m"},
	}.line("app-c5vt", "2026-12-01T10:00:00.123456789Z", true)
	if err != nil || !strings.Contains(lines.String(), string(written)+"\n") {
		t.Errorf("a new line is not the documented one: %s, %v", written, err)
	}
}
