package event_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

func TestAppendAndRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	j := open(t, file)
	for i := range 3 {
		must(t, j.Append(event.Event{Type: event.Warning, Session: "s", Path: "a#1"}, event.Text{Text: fmt.Sprint(i)}))
	}
	must(t, j.Close())
	events, err := event.Read(file)
	must(t, err)
	if len(events) != 3 {
		t.Fatalf("%d events, want 3", len(events))
	}
	for i, e := range events {
		var text event.Text
		must(t, e.Decode(&text))
		if e.Seq != int64(i)+1 || e.V != event.Version || text.Text != fmt.Sprint(i) || e.Time.Location() != time.UTC {
			t.Errorf("event %d = %+v %q", i, e, text.Text)
		}
	}
}

// An incomplete last line after a crash is removed, and the journal continues.
func TestTornLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	j := open(t, file)
	must(t, j.Append(event.Event{Type: event.Warning}, nil))
	must(t, j.Append(event.Event{Type: event.Warning}, nil))
	must(t, j.Close())
	whole, err := os.ReadFile(file)
	must(t, err)
	second := bytes.IndexByte(whole, '\n') + 1
	for cut := second; cut < len(whole); cut++ {
		must(t, os.WriteFile(file, whole[:cut], 0o644))
		events, err := event.Read(file)
		if err != nil || len(events) != 1 {
			t.Fatalf("cut at %d: %d events, %v", cut, len(events), err)
		}
		j := open(t, file)
		must(t, j.Append(event.Event{Type: event.SessionResumed}, nil))
		must(t, j.Close())
		events, err = event.Read(file)
		if err != nil || len(events) != 2 || events[1].Type != event.SessionResumed {
			t.Fatalf("cut at %d, then appended: %v, %v", cut, events, err)
		}
	}
}

// Opening a journal makes it readable only by its owner.
func TestJournalIsPrivate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	must(t, os.WriteFile(file, nil, 0o644))
	must(t, open(t, file).Close())
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s", info.Mode())
	}
}

// Events that are too large for readers are not written.
func TestLongEvent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	j := open(t, file)
	if err := j.Append(event.Event{Type: event.AgentText}, event.Text{Text: strings.Repeat("x", 33<<20)}); err == nil {
		t.Error("it was written")
	}
	must(t, j.Append(event.Event{Type: event.AgentText}, event.Text{Text: strings.Repeat("x", 31<<20)}))
	must(t, j.Close())
	if events, err := event.Read(file); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestDamageIsRefused(t *testing.T) {
	good := `{"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","type":"warning","session":""}` + "\n"
	for name, text := range map[string]string{
		"garbage":      "what\n" + good,
		"hole":         good + `{"v":1,"seq":3,"time":"2026-01-02T03:04:05Z","type":"warning","session":""}` + "\n",
		"version":      `{"v":2,"seq":1,"time":"2026-01-02T03:04:05Z","type":"warning","session":""}` + "\n",
		"empty line":   good + "\n" + good,
		"torn, then a": `{"v":1,"se` + "\n" + good,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "events.jsonl")
			must(t, os.WriteFile(file, []byte(text), 0o644))
			damage := (*event.DamageError)(nil)
			if _, err := event.Open(file, time.Now); !errors.As(err, &damage) || damage.Line == 0 {
				t.Errorf("Open = %v, want a DamageError", err)
			}
			after, err := os.ReadFile(file)
			must(t, err)
			if string(after) != text {
				t.Error("the damaged file was changed")
			}
		})
	}
}

// Watchers see every event once and in order, even with concurrent appends.
func TestWatch(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	defer j.Close() //nolint:errcheck // the test is over
	var seen []int64
	j.Watch(func(e event.Event) { seen = append(seen, e.Seq) })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				if err := j.Append(event.Event{Type: event.Warning}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i, seq := range seen {
		if seq != int64(i)+1 {
			t.Fatalf("event %d came as number %d", seq, i+1)
		}
	}
	if len(seen) != 80 || len(j.Events()) != 80 {
		t.Errorf("%d seen, %d kept, want 80", len(seen), len(j.Events()))
	}
}

// After a failed write, nothing is appended.
func TestBrokenStaysBroken(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "events.jsonl"))
	must(t, j.Close())
	first := j.Append(event.Event{Type: event.Warning}, nil)
	if first == nil {
		t.Fatal("appending to a closed file is no error")
	}
	if again := j.Append(event.Event{Type: event.Warning}, nil); !errors.Is(again, first) || len(j.Events()) != 0 {
		t.Errorf("second append: %v", again)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":1,"time":"2026-01-02T03:04:05Z","type":"warning","session":""}` + "\n" + `{"v":1`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "events.jsonl")
		must(t, os.WriteFile(file, data, 0o644))
		events, err := event.Read(file)
		if err != nil {
			return
		}
		j := open(t, file)
		must(t, j.Append(event.Event{Type: event.Warning}, nil))
		must(t, j.Close())
		again, err := event.Read(file)
		if err != nil || len(again) != len(events)+1 {
			t.Fatalf("%d events, then %d, %v", len(events), len(again), err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	j := open(b, filepath.Join(b.TempDir(), "events.jsonl"))
	defer j.Close() //nolint:errcheck // the benchmark is over
	for b.Loop() {
		if err := j.Append(event.Event{Type: event.AgentText, Path: "implement#1"}, event.Text{Text: "a line of text"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendFloor is the lower bound of BenchmarkAppend: the same bytes, written
// and synced.
func BenchmarkAppendFloor(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	must(b, err)
	defer f.Close() //nolint:errcheck // the benchmark is over
	line := bytes.Repeat([]byte("x"), 150)
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		must(b, f.Sync())
	}
}

func open(t testing.TB, file string) *event.Journal {
	t.Helper()
	j, err := event.Open(file, time.Now)
	must(t, err)
	return j
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
