package coven_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// C-136 C-137: make accept covers the eight criteria and the five gates of the design document, and each
// test that it names exists.
func TestAcceptance(t *testing.T) {
	text, err := os.ReadFile(".ci/acceptance.tsv")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("%q", line)
		}
		count[fields[0]]++
		words := strings.Fields(fields[2])
		if len(words) < 2 {
			t.Errorf("%s has no test", fields[1])
		}
		for _, name := range words[1:] {
			if !exists(t, words[0], name) {
				t.Errorf("%s: %s has no test %s", fields[1], words[0], name)
			}
		}
	}
	if count["criterion"] != 8 || count["gate"] != 5 || len(count) != 2 {
		t.Errorf("%v", count)
	}
}

// exists reports whether a package has a test, and a story if the name includes one.
func exists(t *testing.T, dir, name string) bool {
	t.Helper()
	name, story, isStory := strings.Cut(name, "/")
	if isStory {
		var dirs []string // TestScript also plays those of the real CLI, with the fake one
		for _, in := range map[string][]string{"TestScript": {"script", "real"}, "TestReal": {"real"}}[name] {
			found, err := filepath.Glob(filepath.Join(dir, "testdata", in, story+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, found...)
		}
		if len(dirs) != 1 {
			return false
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + name + `\(`).Match(text) {
			return true
		}
	}
	return false
}
