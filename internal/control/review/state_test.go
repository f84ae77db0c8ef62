package review

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/session"
)

var valid = Anchor{Tree: strings.Repeat("a", 40), Path: "a.go", Side: New, From: 1, To: 2}

// A state that coven cannot have written is damaged: its places would become arguments of git.
func TestCheck(t *testing.T) {
	good := state{Version: 1, Next: 3, Comments: []Comment{{ID: "c1", Anchor: valid}, {ID: "c2", Anchor: valid}}, Looked: []string{valid.Tree}}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*state){
		"version":      func(s *state) { s.Version = 2 },
		"ID twice":     func(s *state) { s.Comments[1].ID = "c1" },
		"no ID":        func(s *state) { s.Comments[1].ID = "" },
		"odd ID":       func(s *state) { s.Comments[1].ID = "c02" },
		"later ID":     func(s *state) { s.Comments[1].ID = "c3" },
		"option":       func(s *state) { s.Comments[0].Tree = "--output=x" },
		"short tree":   func(s *state) { s.Comments[0].Tree = "aaaa" },
		"path outside": func(s *state) { s.Comments[0].Path = "../a.go" },
		"two lines":    func(s *state) { s.Comments[0].Path = "a\nb" },
		"no side":      func(s *state) { s.Comments[0].Side = "" },
		"line 0":       func(s *state) { s.Comments[0].From = 0 },
		"backwards":    func(s *state) { s.Comments[0].To = 0 },
		"far":          func(s *state) { s.Comments[0].To = maxLine + 1 },
		"look":         func(s *state) { s.Looked[0] = "HEAD" },
		"many": func(s *state) {
			for i := range maxComments {
				s.Comments = append(s.Comments, Comment{ID: fmt.Sprintf("c%d", i+3), Anchor: valid})
			}
			s.Next = 10 * maxComments
		},
	} {
		s := good
		s.Comments, s.Looked = slices.Clone(good.Comments), slices.Clone(good.Looked)
		if damage(&s); s.check() == nil {
			t.Errorf("%s: it is valid", name)
		}
	}
}

// No comment is lost if several are added at once.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := change(dir, func(s *state) error {
				s.Comments = append(s.Comments, Comment{ID: fmt.Sprintf("c%d", s.Next), Anchor: valid})
				s.Next++
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
