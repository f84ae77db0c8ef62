package fakebd

import (
	"bytes"
	"encoding/json"
	"testing"
)

// The issues match their documentation: the same each time, and of every kind.
func TestIssues(t *testing.T) {
	data := Issues(337)
	if !bytes.Equal(data, Issues(337)) {
		t.Error("not the same each time")
	}
	seen, ids, others, longest := map[string]int{}, map[string]bool{}, 0, 0
	for line := range bytes.Lines(data) {
		longest = max(longest, len(line))
		var one map[string]any
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if kind, ok := one["_type"]; ok && kind != "issue" || one["status"] == "tombstone" {
			others++
			continue
		}
		ids[one["id"].(string)] = true
		for name, value := range one {
			seen[name]++
			if text, ok := value.(string); ok && len(text) < 20 {
				seen[name+" "+text]++
			}
		}
		if bytes.Contains(line, []byte(`"parent_child"`)) {
			seen["old parent"]++
		}
	}
	if len(ids) != 337 || longest != LongestLine || others < 10 {
		t.Errorf("%d issues, %d other lines, the longest of %d bytes", len(ids), others, longest)
	}
	for _, what := range []string{
		"_type issue", "status closed", "status blocked", "status deferred", "status in_progress", "issue_type epic", "assignee", "pinned",
		"is_template", "ephemeral", "defer_until", "metadata {}", "comments", "external_ref", "labels", "close_reason", "old parent", "compaction_level",
	} {
		if n := seen[what]; n < 3 || n > 330 {
			t.Errorf("%d have %s", n, what)
		}
	}
}
