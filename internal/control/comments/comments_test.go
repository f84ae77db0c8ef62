package comments

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
			err := Change(dir, func(s *File) error {
				s.Add(&Comment{Anchor: anchor})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s, err := Load(dir); err != nil || len(s.Comments) != 20 {
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
		err := Change(dir, func(*File) error { t.Errorf("%s: was changed", name); return nil })
		var damaged *DamagedError
		if !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	if err := Change(dir, func(*File) error { return nil }); err == nil {
		t.Error("the lock is a link out of the session")
	}
}

// A state that coven cannot have written is not used: its trees would be options of git, and its lines indexes.
func TestCheck(t *testing.T) {
	changed := func(by func(s *File)) File {
		s := File{Version: 1, Next: 3, Comments: []Comment{{ID: "c1", Anchor: anchor}, {ID: "c2", Anchor: anchor}}, Looked: []string{anchor.Tree}}
		by(&s)
		return s
	}
	if err := changed(func(s *File) { s.Comments[1].Side, s.Comments[1].Tree = Old, strings.Repeat("0", 64) }).check(); err != nil {
		t.Error(err)
	}
	for name, by := range map[string]func(s *File){
		"newer version":   func(s *File) { s.Version = 2 },
		"many":            func(s *File) { s.Comments = make([]Comment, Max+1) },
		"same ID":         func(s *File) { s.Comments[1].ID = "c1" },
		"ID of a later":   func(s *File) { s.Comments[1].ID = "c3" },
		"ID 0":            func(s *File) { s.Comments[0].ID = "c0" },
		"other ID":        func(s *File) { s.Comments[0].ID = "c01" },
		"ID without c":    func(s *File) { s.Comments[0].ID = "1" },
		"ID of two lines": func(s *File) { s.Comments[0].ID = "c1\nc2" },
		"option":          func(s *File) { s.Comments[0].Tree = "--output=file" },
		"no tree":         func(s *File) { s.Comments[0].Tree = "" },
		"option looked":   func(s *File) { s.Looked[0] = "--output=file" },
		"outside":         func(s *File) { s.Comments[0].Path = "../../x" },
		"two lines":       func(s *File) { s.Comments[0].Path = "x\ny" },
		"side":            func(s *File) { s.Comments[0].Side = "both" },
		"line 0":          func(s *File) { s.Comments[0].From = 0 },
		"negative":        func(s *File) { s.Comments[0].From = -5 },
		"backwards":       func(s *File) { s.Comments[0].From = 3 },
		"huge":            func(s *File) { s.Comments[0].To = math.MaxInt },
	} {
		if err := changed(by).check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// As many comments can be stored as can be read again.
func TestMaximum(t *testing.T) {
	dir, long := t.TempDir(), strings.Repeat("<", MaxText) // escaped
	err := Change(dir, func(s *File) error {
		for range Max {
			if !s.Add(&Comment{Anchor: anchor, Text: long, Suggestion: &long}) {
				t.Fatal("too many")
			}
		}
		if s.Add(&Comment{Anchor: anchor}) {
			t.Error("no limit")
		}
		return nil
	})
	if s, err2 := Load(dir); err != nil || err2 != nil || len(s.Comments) != Max {
		t.Errorf("%v, %v: %d comments", err, err2, len(s.Comments))
	}
}

func TestLook(t *testing.T) {
	var s File
	for _, step := range []struct{ look, last string }{{"a", ""}, {"a", ""}, {"b", "a"}, {"b", "a"}, {"c", "b"}, {"a", "c"}} {
		s.Look(step.look)
		if got := s.Last(step.look); got != step.last {
			t.Errorf("at %s: %q, want %q", step.look, got, step.last)
		}
	}
	if got := s.Last("d"); got != "a" {
		t.Errorf("at a new tree: %q", got)
	}
}
