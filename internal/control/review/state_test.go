package review

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/session"
)

// No comment is lost if several are added at once.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := change(dir, func(s *state) error {
				s.Comments = append(s.Comments, Comment{ID: fmt.Sprint(i)})
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
