package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
)

// named is a block of a guide under a line with the name of its file.
var named = regexp.MustCompile("(?s)\n`(\\.coven/[^`]*)`\n\n```[a-z]+\n(.*?)```")

// The files of the guide to grimoires are right together: they are valid, and the
// tests among them pass and leave no branch out but those named here.
func TestGrimoiresGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/grimoires.md")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	blocks := named.FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		file := filepath.Join(root, b[1])
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b[2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if all := strings.Count(string(text), "```yaml") + strings.Count(string(text), "```md"); len(blocks) != all || all < 6 {
		t.Fatalf("%d of %d blocks are files", len(blocks), all)
	}
	h := &house{library: grimoires.NewLibrary(root, ""), config: config.Default()}
	checked, err := h.library.Validate()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checked {
		for _, p := range c.Problems {
			t.Errorf("%s: %v", c.File, p)
		}
	}
	reports, err := h.rehearse(t.Context(), []string{"careful"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range reports[0].Tests {
		for _, f := range o.Faults {
			t.Errorf("%s: %s", o.Test, f)
		}
	}
	var missing []string
	for _, m := range reports[0].Missing {
		missing = append(missing, m.Step+" "+m.What)
	}
	if got := strings.Join(missing, ", "); got != "implement never fails, fix never fails, changelog never fails, land never fails" {
		t.Errorf("branches that no test reaches: %s", got)
	}
}
