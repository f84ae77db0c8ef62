package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// C-51: The frontmatter of a subagent's record has spawned_at and completed_at in RFC 3339 and UTC,
// model, tokens, duration_ms, subagent_of and permissions, and the times match the duration.
func TestSubagentMetadata(t *testing.T) {
	root := t.TempDir()
	zone := time.FixedZone("elsewhere", 5*3600)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, zone)
	s, err := session.Create(root, "t", "Look", func() time.Time { at = at.Add(1234567 * time.Microsecond); return at })
	must(t, err)
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Project: "p", Query: "Look"}))
	path := event.SpawnPath("look#1", "helper-auth")
	must(t, s.Append(event.Event{Type: event.SpawnQueued, Path: path, TraceID: "t1"}, event.Spawn{
		ID: "helper-auth", Agent: "helper", Task: "Look", Model: "haiku", Permissions: []string{"FilesystemRead", "SemanticSearch"},
	}))
	must(t, s.Append(event.Event{Type: event.SpawnStarted, Path: path, TraceID: "t1"}, event.SpawnStart{ID: "helper-auth", Agent: "helper"}))
	must(t, s.Append(event.Event{Type: event.SpawnEnded, Path: path, TraceID: "t1"}, event.SpawnEnd{
		ID: "helper-auth", Agent: "helper", Status: event.StatusCompleted, Report: "## Summary\n\nFine.", Model: "haiku", Input: 10, Output: 5,
	}))
	must(t, s.Close())
	text, err := os.ReadFile(filepath.Join(root, session.Dir, s.ID, "helper-auth.md"))
	must(t, err)
	front, _, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
	var given struct {
		SubagentOf  string   `yaml:"subagent_of"`
		SpawnedAt   string   `yaml:"spawned_at"`
		CompletedAt string   `yaml:"completed_at"`
		DurationMS  int64    `yaml:"duration_ms"`
		Model       string   `yaml:"model"`
		Tokens      int64    `yaml:"tokens"`
		Permissions []string `yaml:"permissions"`
	}
	must(t, yaml.Unmarshal([]byte(front), &given))
	spawned, err := time.Parse(time.RFC3339, given.SpawnedAt)
	must(t, err)
	completed, err := time.Parse(time.RFC3339, given.CompletedAt)
	must(t, err)
	if !strings.HasSuffix(given.SpawnedAt, "Z") || !strings.HasSuffix(given.CompletedAt, "Z") {
		t.Errorf("not in UTC: %s, %s", given.SpawnedAt, given.CompletedAt)
	}
	took := completed.Sub(spawned).Milliseconds()
	if took < 1000 || took-given.DurationMS > 1 || given.DurationMS-took > 1 {
		t.Errorf("from %s to %s are %d ms, and duration_ms is %d", given.SpawnedAt, given.CompletedAt, took, given.DurationMS)
	}
	if given.SubagentOf != s.ID || given.Model != "haiku" || given.Tokens != 15 || strings.Join(given.Permissions, " ") != "FilesystemRead SemanticSearch" {
		t.Errorf("%+v", given)
	}
}
