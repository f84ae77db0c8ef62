package search_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/search"
)

// Session records are found by their text and by their frontmatter.
func TestSessions(t *testing.T) {
	dir := t.TempDir()
	for path, text := range map[string]string{
		"2026-01-01-a/session.md":    "---\nstatus: completed\ntags: [x, y]\ncost: 1.50\n---\n# Fix the walrus\n",
		"2026-01-01-a/reviewer.md":   "---\nstatus: failed\n---\nThe walrus is not fixed.\n",
		"2026-01-02-b/session.md":    "---\r\nstatus: completed\r\n---\r\nNothing.\r\n",
		"2026-01-02-b/.session.md42": "---\nstatus: completed\n---\nwalrus\n",
		"2026-01-02-b/events.jsonl":  `{"x":"walrus"}`,
		"2026-01-02-b/logs/a.md":     "walrus",
		"2026-01-03-c/session.md":    "---\nstatus: [completed\n---\nwalrus",
	} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644))
	}
	x := search.New(search.Options{Root: dir, List: search.SessionFiles(dir), Now: time.Now})
	all, err := x.Files(t.Context(), "")
	must(t, err)
	for _, c := range []struct {
		fields map[string]string
		want   []string
	}{
		{nil, []string{"2026-01-01-a/reviewer.md", "2026-01-01-a/session.md", "2026-01-02-b/session.md", "2026-01-03-c/session.md"}},
		{map[string]string{"status": "completed"}, []string{"2026-01-01-a/session.md", "2026-01-02-b/session.md"}},
		{map[string]string{"status": "completed", "cost": "1.50", "tags": "[x, y]"}, []string{"2026-01-01-a/session.md"}},
		{map[string]string{"status": ""}, nil},
	} {
		got, err := x.With(all, c.fields)
		must(t, err)
		if !slices.Equal(got, c.want) {
			t.Errorf("with %v there are %q, want %q", c.fields, got, c.want)
		}
	}
	hits, err := x.Query(t.Context(), "walrus", search.QueryOptions{})
	must(t, err)
	if len(hits) != 3 || hits[0].Path != "2026-01-01-a/session.md" {
		t.Errorf("the hits are %+v", hits)
	}
}
