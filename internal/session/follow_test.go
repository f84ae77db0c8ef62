package session

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// A Finder that follows returns the same views as one that reads everything, while sessions grow, shrink, are damaged and replaced.
func TestFollow(t *testing.T) {
	root := t.TempDir()
	s, err := Create(root, "t", "do it", time.Now)
	must(t, err)
	defer s.Close() //nolint:errcheck // only read
	f := NewFinder(root)
	f.Follow()
	var before []View
	check := func(what string) {
		t.Helper()
		got, gotErr := f.load(s.Dir)
		want, wantErr := Load(s.Dir)
		if !reflect.DeepEqual(got, want) || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s: %+v %v\n%+v %v", what, got, gotErr, want, wantErr)
		}
		before = append(before, got)
	}
	check("empty")
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "do it"}))
	check("started")
	for range 3 {
		must(t, s.Append(event.Event{Type: event.StepStarted, Path: "a#1"}, event.StepStart{Kind: "agent"}))
		must(t, s.Append(event.Event{Type: event.AgentTool, Path: "a#1"}, event.Tool{Summary: "Write x"}))
		check("grown")
	}
	check("unchanged")
	if before[2].Steps[0].Doing != "Write x" || len(before[2].Steps) == len(before[4].Steps) {
		t.Errorf("a view changed later: %+v", before[2].Steps)
	}
	file := filepath.Join(s.Dir, eventsFile)
	data, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, data[:len(data)/2], 0o600))
	check("truncated")
	must(t, os.WriteFile(file, append(data, "damaged\n"...), 0o600))
	check("damaged")
	must(t, os.WriteFile(file+".new", data, 0o600))
	must(t, os.Rename(file+".new", file))
	check("replaced")
}
