package fakebd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// LongestLine is the length in bytes, including the newline, of the longest line of
// Issues, for 20 issues or more.
const LongestLine = 52903

// Issues returns n issues as a file of beads JSONL, the same each time. They resemble a
// repository after years with several versions of beads: epics
// with children and with blocked parents; closed, deferred, pinned and ephemeral
// issues; templates, comments and references; and dependencies of many types, including
// those of old versions (parent_child). The file also has lines that are no issues and do
// not count: lines of another _type, and tombstones.
func Issues(n int) []byte {
	var b bytes.Buffer
	lines := 0
	put := func(members ...any) {
		b.WriteByte('{')
		for i := 0; i < len(members); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", members[i], encoded(members[i+1]))
		}
		b.WriteString("}\n")
		lines++
	}
	for i := range n {
		switch i % 40 {
		case 20:
			put("_type", "memory", "key", fmt.Sprintf("note-%d", i), "value", "kept, and no issue")
		case 30:
			put("id", fmt.Sprintf("rw-gone%d", i), "title", "deleted", "status", "tombstone", "priority", 2,
				"created_at", moment(i), "updated_at", moment(i), "deleted_at", moment(i+1), "original_type", "task")
		}
		put(shape(i)...)
	}
	return b.Bytes()
}

func encoded(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return []byte("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// moment returns the creation time of the ith issue. Some issues share a time.
func moment(i int) string {
	return time.Date(2025, 11, 2, 8, 0, 0, 0, time.UTC).Add(time.Duration(i/3) * 3 * time.Hour).Format(time.RFC3339)
}

// family is the number of issues in a group: an epic, its children, and others.
const family = 12

// id returns the ID of the ith issue. The IDs of children begin with that of their epic.
func id(i int) string {
	if at := i % family; at >= 1 && at <= 4 {
		return fmt.Sprintf("%s.%d", id(i-at), at)
	}
	return fmt.Sprintf("rw-%03x", i*7+16)
}

// shape returns the fields of the ith issue.
func shape(i int) []any {
	old := i%2 == 0 // from before comments, owners and dependencies with metadata
	m := []any{}
	if !old {
		m = append(m, "_type", "issue")
	}
	m = append(m, "id", id(i), "title", fmt.Sprintf("Issue %d: <b>\"quoted\" & 日本 🧙</b>", i), "description", text(i))
	if i%5 == 0 {
		m = append(m, "acceptance_criteria", "- [ ] it works\n- [x] it is fast", "design", "# Plan\n\nFirst this, then that.")
	}
	m = append(m, "status", status(i), "priority", (i*7)%5, "issue_type", kind(i))
	if status(i) == "in_progress" || i%17 == 6 {
		m = append(m, "assignee", "bob")
	}
	m = append(m, "created_at", moment(i))
	if !old {
		m = append(m, "owner", "t@example.com", "created_by", "Tester")
	}
	m = append(m, "updated_at", moment(i+2))
	m = append(m, odds(i)...)
	if edges := edges(i); len(edges) > 0 {
		m = append(m, "dependencies", edges)
	}
	if i%13 == 5 {
		m = append(m, "comments", []any{comment(i, old)})
	}
	if old {
		m = append(m, "compaction_level", 0, "original_size", 0)
	} else {
		m = append(m, "dependency_count", len(edges(i)), "dependent_count", 0, "comment_count", 0)
	}
	return m
}

// odds returns the fields that few issues have.
func odds(i int) []any {
	var m []any
	switch {
	case status(i) == "closed":
		m = append(m, "closed_at", moment(i+2), "close_reason", "done: landed as 1a2b3c4")
	case i%19 == 7:
		m = append(m, "defer_until", "2199-01-01T00:00:00Z")
	case i%19 == 8:
		m = append(m, "defer_until", moment(i+1))
	}
	if i%4 == 1 {
		m = append(m, "labels", []string{"area:x", "back end", "später"})
	}
	if i%11 == 4 {
		m = append(m, "external_ref", fmt.Sprintf("gh-%d", i))
	}
	switch i % 14 {
	case 3:
		m = append(m, "metadata", "{}")
	case 9:
		m = append(m, "metadata", map[string]any{"k": "v", "n": 3, "nested": []int{1, 2}})
	}
	switch i % 31 {
	case 9:
		m = append(m, "pinned", true)
	case 18:
		m = append(m, "is_template", true)
	}
	if i%3 == 2 && lonely(i) {
		m = append(m, "ephemeral", true)
	}
	return m
}

// lonely reports whether an issue has no dependencies in either direction. Only such
// issues are ephemeral, because bd import drops dependencies between the two kinds.
func lonely(i int) bool {
	for j := i; j < i+2*family; j++ {
		for _, e := range edges(j) {
			if j == i || e["depends_on_id"] == id(i) {
				return false
			}
		}
	}
	return true
}

func status(i int) string {
	switch i % 10 {
	case 2, 5, 9:
		return "closed"
	case 7:
		return []string{"in_progress", "blocked", "deferred"}[i/10%3]
	}
	return "open"
}

func kind(i int) string {
	if i%family == 0 {
		return "epic"
	}
	return []string{"task", "bug", "feature", "task", "chore"}[i%5]
}

// edges returns the dependencies of the ith issue: each on an earlier issue, and without duplicates.
func edges(i int) []map[string]any {
	var all []map[string]any
	add := func(on int, kind string) {
		if len(all) > 0 && all[0]["depends_on_id"] == id(on) {
			return
		}
		e := map[string]any{"issue_id": id(i), "depends_on_id": id(on), "type": kind, "created_at": moment(i), "created_by": "Tester"}
		if i%2 == 1 {
			e["metadata"] = "{}"
		}
		all = append(all, e)
	}
	if at := i % family; at >= 1 && at <= 4 {
		add(i-at, []string{"parent-child", "parent_child"}[i/family%2])
	}
	switch {
	case i < family:
	case i%family == 0 && i/family%3 == 1:
		add(i-family, "blocks") // an epic that waits for another one blocks its children, too
	case i%7 == 3:
		add(i-5, "blocks")
	case i%7 == 4:
		add(i-3, []string{"related", "discovered-from", "relates-to", "conditional-blocks"}[i%4])
	}
	if i >= family && i%29 == 11 {
		add(i-9, "blocks")
	}
	return all
}

func comment(i int, old bool) map[string]any {
	c := map[string]any{"issue_id": id(i), "author": "Tester", "text": "I saw it too.\nTwice.", "created_at": moment(i + 1)}
	c["id"] = fmt.Sprintf("01a1fbb0-f49d-74e3-a52b-%012x", i)
	if old {
		c["id"] = i
	}
	return c
}

// longest is the index of the issue with the longest line.
const longest = 16

// text returns a description. One of them is very long.
func text(i int) string {
	if i == longest {
		return strings.Repeat("All work and no play. \\ \"x\" \t\n", 1400) + strings.Repeat("x", 3511)
	}
	return strings.Repeat(fmt.Sprintf("What is to be done about %d, in Markdown: `code` and **bold**.\n", i), 1+i%4)
}
