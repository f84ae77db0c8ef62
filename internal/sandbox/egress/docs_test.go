package egress

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The guide contains valid patterns, effective files and variables, and the actual text of a
// refusal.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "  network:\n")
	example, _, _ = strings.Cut(example, "```")
	entries := regexp.MustCompile(`(?m)^    - "?([^\s"]+)`).FindAllStringSubmatch(example, -1)
	if len(entries) != 4 {
		t.Errorf("%d entries", len(entries))
	}
	for _, entry := range entries {
		patterns(t, entry[1])
	}
	_, row, _ := strings.Cut(string(text), "| packages | ")
	row, _, _ = strings.Cut(row, "\n")
	files := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1)
	for _, file := range files {
		if listed(Input{Files: []string{strings.ReplaceAll(file[1], "*", "x")}}) == "" {
			t.Errorf("%s names no ecosystem", file[1])
		}
	}
	p := listen(t, Options{})
	variables := 0
	for _, kv := range p.Env() {
		if name, _, _ := strings.Cut(kv, "="); strings.Contains(string(text), name) || strings.Contains(string(text), strings.ToUpper(name)) {
			variables++
		} else {
			t.Errorf("the guide lacks %s", name)
		}
	}
	if len(files) < 10 || variables < 10 {
		t.Errorf("%d files, %d variables", len(files), variables)
	}
	h, err := newTarget("example.com", "443")
	if err != nil {
		t.Fatal(err)
	}
	_, refused := list(nil).check(h)
	line := (&refusals{file: "~/.config/coven/config.yaml"}).text(asRefusal(refused))
	if !strings.Contains(string(text), "\n"+line+"\n") {
		t.Errorf("the guide lacks the line %s", line)
	}
}
