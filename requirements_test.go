package coven_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/requirements.tsv lists the completed requirements, with an ID and a title per line.
// docs/requirements.md is generated from it and from the tests that name the IDs, by
// UPDATE=1 go test -run TestRequirements .
const (
	requirementsList = "docs/requirements.tsv"
	requirementsPage = "docs/requirements.md"
)

var requirementID = regexp.MustCompile(`\b[CKLT]-[0-9]{2,3}\b`)

func TestRequirements(t *testing.T) {
	titles := requirementTitles(t)
	tests := requirementTests(t)
	for id := range tests {
		if titles[id] == "" {
			t.Errorf("%s names %s, which %s does not list", tests[id][0], id, requirementsList)
		}
	}
	var page strings.Builder
	page.WriteString("# Requirements\n\nWhat is done, and the tests that show it. Made by `UPDATE=1 go test -run TestRequirements .`\n\n| id | requirement | shown by |\n|---|---|---|\n")
	ids := []string{}
	for id := range titles {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if len(tests[id]) == 0 {
			t.Errorf("%s is listed as done and no test names it", id)
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", id, titles[id], strings.Join(tests[id], ", "))
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(requirementsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	present, err := os.ReadFile(requirementsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(present) != page.String() {
		t.Errorf("%s is not what the tests say: UPDATE=1 go test -run TestRequirements .", requirementsPage)
	}
}

func requirementTitles(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(requirementsList)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	titles := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		id, title, ok := strings.Cut(lines.Text(), "\t")
		if !ok || requirementID.FindString(id) != id || title == "" {
			t.Fatalf("%s: a line is no id and title: %q", requirementsList, lines.Text())
		}
		titles[id] = title
	}
	return titles
}

// requirementTests returns the test files that name each ID in a comment.
func requirementTests(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && file != "." && strings.HasPrefix(d.Name(), ".") {
			return skipOr(err)
		}
		if d.IsDir() || file == "requirements_test.go" || !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, ".txtar") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "#") {
				continue
			}
			for _, id := range requirementID.FindAllString(line, -1) {
				if !slices.Contains(tests[id], file) {
					tests[id] = append(tests[id], file)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func skipOr(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}
