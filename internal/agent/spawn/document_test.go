package spawn_test

import (
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/agent/spawn"
)

// C-105: The section is found in any place.
func TestSummary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"first":                 {"## Summary\n\nGood.\n\n# Findings\n\n- a", "Good."},
		"last":                  {"# Findings\n\n- a\n\n## Summary\nGood.\n", "Good."},
		"any case":              {"## SUMMARY\nGood.", "Good."},
		"any level":             {"#### summary\nGood.\n#### Next\nno", "Good."},
		"ends at same level":    {"## Summary\nGood.\n## More\nno", "Good."},
		"ends at higher level":  {"### Summary\nGood.\n# More\nno", "Good."},
		"keeps lower levels":    {"## Summary\nGood.\n### Detail\nyes\n# More\nno", "Good.\n### Detail\nyes"},
		"closing marks":         {"## Summary ##\nGood.", "Good."},
		"bold":                  {"## **Summary**\nGood.", "Good."},
		"with a colon":          {"## Summary:\nGood.", "Good."},
		"in fenced code":        {"```\n## Summary\nno\n```\nText.\n\n## Summary\nGood.", "Good."},
		"heading in its code":   {"## Summary\nGood.\n~~~sh\n# not a heading\n~~~\nyes\n# More", "Good.\n~~~sh\n# not a heading\n~~~\nyes"},
		"longer fence":          {"````\n```\n## Summary\nno\n````\n\n## Summary\nGood.", "Good."},
		"fence of another kind": {"```\n~~~\n## Summary\nno\n```\n\n## Summary\nGood.", "Good."},
		"unclosed fence":        {"Text.\n\n```\n## Summary\nno", "Text."},
		"indented code":         {"Text.\n\n    ## Summary\n    no", "Text."},
		"no space":              {"Text.\n\n##Summary\nno", "Text."},
		"seven marks":           {"Text.\n\n####### Summary\nno", "Text."},
		"empty section":         {"Text.\n\n## Summary\n\n# Findings\n\n- a", "Text."},
		"none":                  {"# Title\n\nFirst\nparagraph.\n\nSecond.", "First\nparagraph."},
		"only a heading":        {"# Title", ""},
		"line ends of Windows":  {"## Summary\r\nGood.\r\n# More\r\n", "Good."},
	} {
		if got := spawn.Summary(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// C-14 C-109: A record has all sections, even if the agent omitted them, and only coven's links.
func TestDocument(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]string{
		"complete":    "## Summary\n\nGood.\n\n# Findings\n\n- a [[else]]",
		"no findings": "## Summary\n\nGood.\n\n- a [[else]]",
		"no summary":  "Good.\n\n# Findings\n\n- a [[else]]",
		"neither":     "Good.\n\n- a [[else]]",
	} {
		front := spawn.Front{SubagentOf: "s", AgentName: "helper", Status: "completed", Permissions: []string{"FilesystemRead"}, ParentChain: []string{"user", "build", "helper"}}
		text, err := spawn.Document(front, "Look [[there]]: {{x}}\n---\n", "", report)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitN(text, "---\n", 3)
		var read spawn.Front
		if err := yaml.Unmarshal([]byte(parts[1]), &read); err != nil || read.AgentName != "helper" || read.ParentChain[1] != "build" {
			t.Errorf("%s: %+v, %v", name, read, err)
		}
		for _, want := range []string{"\n# Task\n", "\n## Summary\n\nGood.", "\n# Findings\n", "- a ", "Parent: [[session]]", "{{x}}"} {
			if strings.Count(text, want) != 1 && want != "- a " {
				t.Errorf("%s: %q is there %d times:\n%s", name, want, strings.Count(text, want), text)
			}
		}
		if strings.Count(text, "[[") != 1 {
			t.Errorf("%s: the agent made a link:\n%s", name, text)
		}
	}
}

// The documented example has exactly the fields of a record.
func TestDocumentedFront(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/formats/session.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n```\nsubagent_of:")
	block, _, closed := strings.Cut("subagent_of:"+block, "\n```\n")
	if !found || !closed {
		t.Fatal("the page has no example")
	}
	decoder := yaml.NewDecoder(strings.NewReader(block))
	decoder.KnownFields(true)
	var front spawn.Front
	if err := decoder.Decode(&front); err != nil {
		t.Fatal(err)
	}
	again, err := yaml.Marshal(front)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(again)) {
		if key, _, _ := strings.Cut(line, ":"); !strings.Contains(block, key+":") {
			t.Errorf("the example lacks %s", key)
		}
	}
}

// C-18: Names of records.
func TestID(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{"helper-auth": true, "helper-auth-2": true}
	for _, test := range []struct {
		request spawn.Request
		want    string
	}{
		{spawn.Request{Agent: "helper", Task: "x", TaskID: "auth"}, "helper-auth-3"},
		{spawn.Request{Agent: "helper", Task: "Write tests for the parser"}, "helper-write-tests-for-the"},
		{spawn.Request{Agent: "helper", Task: "x", TaskID: "../../etc/passwd"}, "helper-etc-passwd"},
		{spawn.Request{Agent: "helper", Task: "🙂"}, "helper-task"},
		{spawn.Request{Agent: "helper", Task: strings.Repeat("a", 300)}, "helper-" + strings.Repeat("a", 50)},
		{spawn.Request{Agent: "helper", Task: "Größe prüfen"}, "helper-grosse-prufen"},
	} {
		if got := spawn.ID(test.request, func(id string) bool { return taken[id] }); got != test.want {
			t.Errorf("%+v: %q, want %q", test.request, got, test.want)
		}
	}
}
