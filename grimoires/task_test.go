package grimoires

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTaskData(t *testing.T) {
	got := TaskData(Task{
		ID: "c-1", Title: "T", Description: "D", Acceptance: "- a\r\n- b\r\n", Design: "de", Notes: "no", Type: "bug",
		Labels: []string{"l"}, Parent: "c-0", ExternalRef: "gh-1",
	})
	want := map[string]any{
		"id": "c-1", "title": "T", "description": "D", "body": "D", "acceptance": "- a\n- b", "acceptance_criteria": []string{"a", "b"},
		"design": "de", "notes": "no", "type": "bug", "priority": "P0", "labels": []string{"l"}, "parent": "c-0", "external_ref": "gh-1",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, slices.Sorted(slices.Values(taskKeys()))) {
		t.Errorf("keys: %v", keys)
	}
}

// The acceptance field takes precedence over the section of the description.
func TestAcceptanceOfDescription(t *testing.T) {
	const section = "## Acceptance Criteria\n\n1. one\n2. two\n\n### Later\n- three\n\n```\n## Not a heading\n- no item\n```\n\n## Next\n- not mine\n"
	for description, want := range map[string][]string{
		"Intro\n\n" + section: {"one", "two", "three", "```\n## Not a heading\n- no item\n```"},
		strings.ReplaceAll(section, "## Acceptance Criteria", "### **acceptance criteria:** ##"): {"one", "two"},
		"```\n## Acceptance Criteria\n- no\n```\n":                                               {},
		"no section\n- item\n":                                          {},
		"## Acceptance Criteria":                                        {},
		"## Acceptance Criteria\r\n* a\r\n  b\r\n* c":                   {"a\nb", "c"},
		"#Acceptance Criteria\n- a":                                     {},
		"## Acceptance Criteria\n- a\n# T\n## Acceptance Criteria\n- b": {"a"},
	} {
		if got := TaskData(Task{Description: description})["acceptance_criteria"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", description, got, want)
		}
	}
	got := TaskData(Task{Acceptance: "field", Description: section})
	if !reflect.DeepEqual(got["acceptance_criteria"], []string{"field"}) || got["acceptance"] != "field" {
		t.Errorf("got %v", got)
	}
}

func TestCriteria(t *testing.T) {
	for markdown, want := range map[string][]string{
		"":                               {},
		"one line":                       {"one line"},
		"a\nb\n\nc":                      {"a\nb", "c"},
		"- a\n- b\n\n- c":                {"a", "b", "c"},
		"* [ ] a\n* [x] b\n+ c":          {"a", "b", "c"},
		"1) a\n2. b\n10. c":              {"a", "b", "c"},
		"All of:\n- a\n- b":              {"All of:", "a", "b"},
		"- a\n  more\n    - deep\n- b":   {"a\nmore\n  - deep", "b"},
		"- a\nlazy\n- b":                 {"a\nlazy", "b"},
		"- a\n\n  second paragraph\n- b": {"a\n\nsecond paragraph", "b"},
		"- a\n\nafter":                   {"a", "after"},
		"# Head\n- a\n## More\nb":        {"a", "b"},
		"- \n-\n- a":                     {"a"},
		"-5 is no item\n*bold* neither":  {"-5 is no item\n*bold* neither"},
		"- run:\n  ```\n  - x\n\n  y\n  ```\n- b": {"run:\n```\n- x\n\ny\n```", "b"},
		"- {{.x}} `@file` \\n":                    {"{{.x}} `@file` \\n"},
		"GIVEN a\nWHEN b\nTHEN c":                 {"GIVEN a\nWHEN b\nTHEN c"},
		"- a -- b\n- c - d":                       {"a -- b", "c - d"},
	} {
		if got := Criteria(markdown); !slices.Equal(got, want) || got == nil {
			t.Errorf("%q:\n got %q\nwant %q", markdown, got, want)
		}
	}
}

// No word of the criteria is lost.
func FuzzCriteria(f *testing.F) {
	f.Add("- a\n\n  b\n```\n- c\n")
	f.Add("1. x\n# h\n\ty")
	f.Fuzz(func(t *testing.T, markdown string) {
		joined := strings.Join(Criteria(markdown), "\n")
		eachLine(lf(markdown), func(line string, code bool) {
			if heading.MatchString(line) && !code {
				return
			}
			if m := item.FindStringSubmatch(line); m != nil && !code {
				line = m[1]
			}
			if !strings.Contains(joined, strings.TrimSpace(line)) {
				t.Fatalf("%q lacks %q", joined, line)
			}
		})
	})
}
