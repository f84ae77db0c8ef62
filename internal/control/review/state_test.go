package review

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/session"
)

var anchor = Anchor{Tree: strings.Repeat("a", 40), Path: "a.go", Side: New, From: 1, To: 2}

// No comment is lost if several are added at once.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := change(dir, func(s *state) error {
				s.add(&Comment{Anchor: anchor})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s, err := load(dir); err != nil || len(s.Comments) != 20 {
		t.Errorf("%d comments, %v", len(s.Comments), err)
	}
}

// A damaged file is neither read nor replaced, and links and pipes are not followed.
func TestDamaged(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(file string) error{
		"text":    func(file string) error { return os.WriteFile(file, []byte("{"), 0o600) },
		"version": func(file string) error { return os.WriteFile(file, []byte(`{"v":2}`), 0o600) },
		"link":    func(file string) error { return os.Symlink(outside, file) },
		"pipe":    func(file string) error { return syscall.Mkfifo(file, 0o600) },
		"dir":     func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, session.ReviewFile)); err != nil {
			t.Fatal(err)
		}
		err := change(dir, func(*state) error { t.Errorf("%s: was changed", name); return nil })
		var damaged *DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	if err := change(dir, func(*state) error { return nil }); err == nil {
		t.Error("the lock is a link out of the session")
	}
}

// A state that coven cannot have written is not used: its trees would be options of git, and its lines indexes.
func TestCheck(t *testing.T) {
	changed := func(by func(s *state)) state {
		s := state{Version: 1, Next: 3, Comments: []Comment{{ID: "c1", Anchor: anchor}, {ID: "c2", Anchor: anchor}}, Looked: []string{anchor.Tree}}
		by(&s)
		return s
	}
	if err := changed(func(s *state) { s.Comments[1].Side, s.Comments[1].Tree = Old, strings.Repeat("0", 64) }).check(); err != nil {
		t.Error(err)
	}
	for name, by := range map[string]func(s *state){
		"newer version":   func(s *state) { s.Version = 2 },
		"many":            func(s *state) { s.Comments = make([]Comment, maxComments+1) },
		"same ID":         func(s *state) { s.Comments[1].ID = "c1" },
		"ID of a later":   func(s *state) { s.Comments[1].ID = "c3" },
		"ID 0":            func(s *state) { s.Comments[0].ID = "c0" },
		"other ID":        func(s *state) { s.Comments[0].ID = "c01" },
		"ID without c":    func(s *state) { s.Comments[0].ID = "1" },
		"ID of two lines": func(s *state) { s.Comments[0].ID = "c1\nc2" },
		"option":          func(s *state) { s.Comments[0].Tree = "--output=file" },
		"no tree":         func(s *state) { s.Comments[0].Tree = "" },
		"option looked":   func(s *state) { s.Looked[0] = "--output=file" },
		"outside":         func(s *state) { s.Comments[0].Path = "../../x" },
		"two lines":       func(s *state) { s.Comments[0].Path = "x\ny" },
		"side":            func(s *state) { s.Comments[0].Side = "both" },
		"line 0":          func(s *state) { s.Comments[0].From = 0 },
		"negative":        func(s *state) { s.Comments[0].From = -5 },
		"backwards":       func(s *state) { s.Comments[0].From = 3 },
		"huge":            func(s *state) { s.Comments[0].To = math.MaxInt },
	} {
		if err := changed(by).check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// As many comments can be stored as can be read again.
func TestMaximum(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("<", maxText) // escaped
	err := change(dir, func(s *state) error {
		for range maxComments {
			if !s.add(&Comment{Anchor: anchor, Text: long, Suggestion: &long}) {
				t.Fatal("too many")
			}
		}
		if s.add(&Comment{Anchor: anchor}) {
			t.Error("no limit")
		}
		return nil
	})
	if s, err2 := load(dir); err != nil || err2 != nil || len(s.Comments) != maxComments {
		t.Errorf("%v, %v: %d comments", err, err2, len(s.Comments))
	}
}

func TestLook(t *testing.T) {
	var s state
	for _, step := range []struct{ look, last string }{{"a", ""}, {"a", ""}, {"b", "a"}, {"b", "a"}, {"c", "b"}, {"a", "c"}} {
		s.look(step.look)
		if got := s.last(step.look); got != step.last {
			t.Errorf("at %s: %q, want %q", step.look, got, step.last)
		}
	}
	if got := s.last("d"); got != "a" {
		t.Errorf("at a new tree: %q", got)
	}
}
