package session_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

func day() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestSlug(t *testing.T) {
	for text, want := range map[string]string{
		"Add a --version flag":         "add-a-version-flag",
		"../../x":                      "x",
		"🦉":                            "session",
		"修复登录":                         "xiu-fu-deng-lu",
		"L'été à Zürich":               "lete-a-zurich",
		"Исправь ошибку":               "isprav-oshibku",
		"_a_b_.lock":                   "a-b-lock",
		"R&D @ home":                   "randd-at-home",
		strings.Repeat("修", 99):        strings.Trim(strings.Repeat("xiu-", 13)[:50], "-"),
		"":                             "session",
		"a  b":                         "a-b",
		strings.Repeat("x", 99):        strings.Repeat("x", 50),
		strings.Repeat("x", 49) + " y": strings.Repeat("x", 49),
	} {
		if got := session.Slug(text); got != want {
			t.Errorf("Slug(%q) = %q, want %q", text, got, want)
		}
	}
}

// For ASCII, coven's implementation matches the library.
func TestSlugOfASCII(t *testing.T) {
	// The é makes Slug use the library, which converts it to e.
	for a := range rune(unicode.MaxASCII + 1) {
		for b := range rune(unicode.MaxASCII + 1) {
			text := "x" + string(a) + string(b) + "y Z-"
			if got, want := session.Slug(text), strings.TrimSuffix(session.Slug(text+"é"), "-e"); got != want {
				t.Errorf("Slug(%q) = %q, the library: %q", text, got, want)
			}
		}
	}
}

// Every slug is safe as a directory name and as part of a ref.
func FuzzSlug(f *testing.F) {
	for _, text := range []string{"Add a flag", "../..", "a.lock", "_", "-x", "@{", "été", "修复", "a\x00b", "\xff", "ﷺ"} {
		f.Add(text)
	}
	safe := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, text string) {
		if got := session.Slug(text); len(got) > 50 || !safe.MatchString(got) {
			t.Errorf("Slug(%q) = %q", text, got)
		}
	})
}

// Concurrently created sessions with the same title have different directories.
func TestCreateUnique(t *testing.T) {
	root := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[string]bool{}
	for range 20 {
		all.Go(func() {
			s, err := session.Create(root, "t", "Same title", day)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[s.ID] = true
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(ids) != 20 || !ids["2026-01-02-same-title"] || !ids["2026-01-02-same-title-20"] {
		t.Errorf("ids: %v", ids)
	}
}

// A session has one writer, and is running only while the writer lives.
func TestOneWriter(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	if _, err := session.Open(root, s.ID, day); !errors.Is(err, session.ErrBusy) {
		t.Errorf("Open = %v, want ErrBusy", err)
	}
	if v := view(t, root); v.Status != session.Running {
		t.Errorf("status %s", v.Status)
	}
	must(t, s.Close())
	if v := view(t, root); v.Status != session.Interrupted {
		t.Errorf("status %s after its writer is gone", v.Status)
	}
	again, err := session.Open(root, s.ID, day)
	must(t, err)
	must(t, again.Append(event.Event{Type: event.SessionResumed}, event.Resumed{}))
	must(t, again.Append(event.Event{Type: event.SessionWaiting}, event.Waiting{Reason: "review", Detail: "d", Next: "coven approve t"}))
	must(t, again.Close())
	if v := view(t, root); v.Status != session.Waiting || v.Reason != "review" || v.Next != "coven approve t" {
		t.Errorf("waiting: %+v", v)
	}
}

// The views match the events at every step.
func TestViews(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	must(t, s.Append(event.Event{Type: event.StepStarted, Path: "a#1"}, event.StepStart{Kind: "agent"}))
	must(t, s.Append(event.Event{Type: event.AgentTool, Path: "a#1"}, event.Tool{Summary: "Write x"}))
	if v := view(t, root); v.At() != "a Write x" {
		t.Errorf("at work: %q", v.At())
	}
	must(t, s.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, map[string]any{
		"ok": true, "summary": "did it", "usage": map[string]any{"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5},
	}))
	must(t, s.Append(event.Event{Type: event.SessionCompleted}, event.Ended{Summary: "did it", Commit: "abc"}))
	must(t, s.Close())

	var meta struct {
		SessionID string `json:"session_id"`
		Status    string
		Commit    string
		CostUSD   float64 `json:"cost_usd"`
		Tokens    struct{ Input, Output, Total int }
		Receipts  []any
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, "metadata.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &meta))
	if meta.SessionID != s.ID || meta.Status != "completed" || meta.Commit != "abc" || meta.Tokens.Total != 7 || meta.CostUSD != 0.5 || meta.Receipts == nil {
		t.Errorf("metadata: %s", data)
	}
	story, err := os.ReadFile(filepath.Join(s.Dir, "session.md"))
	must(t, err)
	_, front, _ := strings.Cut(string(story), "---\n")
	front, body, _ := strings.Cut(front, "---\n")
	var head map[string]string
	must(t, yaml.Unmarshal([]byte(front), &head))
	if head["status"] != "completed" || head["primary_agent"] != "build" || !strings.Contains(body, "# User Query\n\nA title\n") || !strings.Contains(body, "Landed as abc.") {
		t.Errorf("story: %s", story)
	}
}

// The views say how a session ended before the event is durable: no process writes them later.
func TestLastViews(t *testing.T) {
	for _, last := range []event.Type{event.SessionCompleted, event.SessionCancelled} {
		s := begin(t, t.TempDir())
		want := `"status": "` + strings.TrimPrefix(string(last), "session.") + `"`
		seen := false
		s.Journal.Watch(func(e event.Event) {
			data, err := os.ReadFile(filepath.Join(s.Dir, "metadata.json"))
			must(t, err)
			seen = e.Type == last && strings.Contains(string(data), want)
		})
		must(t, s.Append(event.Event{Type: last}, event.Ended{}))
		if !seen {
			t.Errorf("metadata.json did not say %s when the session was over", want)
		}
		must(t, s.Close())
	}
}

// session.md contains no terminal control characters from foreign text.
func TestStoryIsReadable(t *testing.T) {
	const sly, shown = "a\x1b[31m\a\rb\u009b\u202ec\u2069\r\n\td\xff é", "a\uFFFD[31m\uFFFD\uFFFDb\uFFFD\uFFFDc\uFFFD\n\td\uFFFD é"
	root := t.TempDir()
	s, err := session.Create(root, "t", "Q "+sly, day)
	must(t, err)
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "Q " + sly}))
	must(t, s.Append(event.Event{Type: event.StepStarted, Path: "a#1"}, event.StepStart{Kind: "review"}))
	finding := map[string]any{"severity": "error", "file": "f\x1b", "message": "M " + sly}
	must(t, s.Append(event.Event{Type: event.StepCompleted, Path: "a#1"}, map[string]any{
		"summary": "S " + sly, "error": "E " + sly, "opinions": []any{map[string]any{"reviewer": "R", "verdict": "fail", "findings": []any{finding}}},
	}))
	must(t, s.Append(event.Event{Type: event.SessionFailed}, event.Ended{Reason: "O " + sly}))
	must(t, s.Close())
	story, err := os.ReadFile(filepath.Join(s.Dir, "session.md"))
	must(t, err)
	for _, want := range []string{"Q " + shown, "S " + shown, "E " + shown, "f\uFFFD: M a\uFFFD[31m", "O " + shown} {
		if !strings.Contains(string(story), want) {
			t.Errorf("it does not hold %q:\n%q", want, story)
		}
	}
	if i := strings.IndexAny(string(story), "\x1b\a\r\u009b\u202e\u2069"); i >= 0 {
		t.Errorf("at %d of %q", i, story)
	}
}

// Waiting time does not count as active time.
func TestActive(t *testing.T) {
	at := day()
	now := func() time.Time { return at }
	root := t.TempDir()
	s, err := session.Create(root, "t", "A title", now)
	must(t, err)
	for _, step := range []struct {
		after time.Duration
		typ   event.Type
		data  any
	}{
		{0, event.SessionStarted, event.Session{}},
		{time.Minute, event.SessionWaiting, event.Waiting{}},
		{time.Hour, event.SessionResumed, event.Resumed{}},
		{time.Minute, event.SessionBlocked, event.Ended{}},
		{time.Hour, event.SessionResumed, event.Resumed{}},
		{time.Second, event.Warning, event.Text{}},
	} {
		at = at.Add(step.after)
		must(t, s.Append(event.Event{Type: step.typ}, step.data))
	}
	must(t, s.Close())
	if v := view(t, root); v.Active != 2*time.Minute+time.Second {
		t.Errorf("active for %s", v.Active)
	}
}

// A session that waits for a limit in its own process is shown as waiting but is
// running. If it is killed, it is interrupted. The wait does not count as active time.
func TestParked(t *testing.T) {
	at := day()
	root := t.TempDir()
	s, err := session.Create(root, "t", "A title", func() time.Time { return at })
	must(t, err)
	must(t, s.Freeze([]byte("v: 1\ngrimoire: {name: x}\n")))
	must(t, err)
	limit := event.Limit{Account: "anthropic", Reason: "five_hour", At: day().Add(time.Hour)}
	add := func(after time.Duration, typ event.Type, data any) session.View {
		at = at.Add(after)
		must(t, s.Append(event.Event{Type: typ}, data))
		return view(t, root)
	}
	add(0, event.SessionStarted, event.Session{})
	v := add(time.Minute, event.LimitMet, limit)
	if shown := v.Shown(); v.Status != session.Running || shown.Status != session.Waiting || shown.Reason != "limit" || !shown.Until.Equal(limit.At) {
		t.Errorf("%+v is shown as %+v", v, shown)
	}
	if meta, err := os.ReadFile(filepath.Join(v.Dir, "metadata.json")); err != nil || !strings.Contains(string(meta), `"reason": "limit"`) {
		t.Errorf("%s, %v", meta, err)
	}
	add(time.Hour, event.LimitMet, limit)
	if v = add(time.Hour, event.LimitOver, nil); v.Parked != nil || v.Shown().Status != session.Running || v.Active != time.Minute {
		t.Errorf("it goes on: %+v", v)
	}
	add(time.Second, event.LimitMet, limit)
	must(t, s.Close())
	if v = view(t, root); v.Shown().Status != session.Interrupted || v.Parked != nil || !v.Crashed || v.Active != time.Minute+time.Second {
		t.Errorf("killed: %+v", v)
	}
}

// A damaged session does not hide other sessions.
func TestListBroken(t *testing.T) {
	root := t.TempDir()
	must(t, begin(t, root).Close())
	broken := filepath.Join(root, session.Dir, "broken")
	must(t, os.Mkdir(broken, 0o755))
	must(t, os.WriteFile(filepath.Join(broken, "events.jsonl"), []byte("what\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(root, session.Dir, "empty"), 0o755))
	views, err := session.List(root)
	if len(views) != 1 || err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("%d views, %v", len(views), err)
	}
	if !session.NeverStarted(root, "empty") || session.NeverStarted(root, views[0].ID) {
		t.Error("NeverBegan is wrong")
	}
}

func begin(t *testing.T, root string) *session.Session {
	t.Helper()
	s, err := session.Create(root, "t", "A title", day)
	must(t, err)
	must(t, s.Freeze([]byte("v: 1\ngrimoire: {name: x}\n")))
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "A title"}))
	return s
}

func view(t *testing.T, root string) session.View {
	t.Helper()
	v, err := session.NewFinder(root).OfTask("t")
	must(t, err)
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
