package plugintest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

// A change of a Repo matches git's output, and computing it does not modify the worktree.
func TestRepoChange(t *testing.T) {
	t.Parallel()
	repo := NewRepo(t, t.TempDir(), map[string]string{"a.txt": "one\ntwo\nthree\n", "b/old.txt": "1\n2\n3\n4\n5\n", "gone": "nobody needs this\n"})
	repo.Write(t, "a.txt", "one\nTWO\nthree\nfour\n")
	repo.Write(t, "ü/new file", "x\n")
	repo.Write(t, "binary", "\x00\xff")
	for from, to := range map[string]string{"b/old.txt": "b/new.txt"} {
		if err := os.Rename(filepath.Join(repo.Dir, from), filepath.Join(repo.Dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(repo.Dir, "gone")); err != nil {
		t.Fatal(err)
	}
	before, err := repo.State()
	if err != nil {
		t.Fatal(err)
	}
	change := repo.Change(t)
	want := []reviewer.File{
		{Path: "a.txt", Status: "M", Added: 2, Deleted: 1},
		{Path: "b/new.txt", From: "b/old.txt", Status: "R"},
		{Path: "binary", Status: "A", Binary: true},
		{Path: "gone", Status: "D", Deleted: 1},
		{Path: "ü/new file", Status: "A", Added: 1},
	}
	if !reflect.DeepEqual(change.Files, want) {
		t.Errorf("%+v", change.Files)
	}
	if len(change.Base) != 40 || len(change.Tree) != 40 || change.Dir != repo.Dir || change.Round != 1 {
		t.Errorf("%+v", change)
	}
	for _, part := range []string{"\n-two\n+TWO\n", "rename to b/new.txt", "+++ b/ü/new file", "Binary files"} {
		if !strings.Contains(change.Diff, part) {
			t.Errorf("no %q in\n%s", part, change.Diff)
		}
	}
	after, err := repo.State()
	if err != nil || !maps.Equal(before, after) || len(after) != 4 {
		t.Errorf("%v, then %v: %v", before, after, err)
	}
	if staged, err := repo.git("diff", "--cached", "--name-only"); err != nil || staged != "" {
		t.Errorf("staged: %q %v", staged, err)
	}
}

// Services returns the configured answers and records the requests.
func TestServices(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a := "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+1\n+diff --git a/b b/b\n"
	b := "diff --git \"a/\\303\\251\" \"b/\\303\\251\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\251\"\n@@ -0,0 +1,2 @@\n+2\n+3\n"
	patch := a + b
	s := &Services{Answers: []hostservice.Answer{{Text: "first"}, {Text: "last"}}, Files: map[string][]byte{"a": []byte("A")}, Patch: patch}
	for _, want := range []string{"first", "last", "last"} {
		if got, err := s.RunAgent(ctx, hostservice.Ask{Prompt: want}); err != nil || got.Text != want {
			t.Errorf("%+v %v, want %s", got, err, want)
		}
	}
	if asks := s.Asks(); len(asks) != 3 || asks[1].Prompt != "last" {
		t.Errorf("%+v", asks)
	}
	for paths, want := range map[string]string{"": patch, "a": a, "é": b, "b": ""} {
		if got, err := s.Diff(ctx, strings.Fields(paths)...); err != nil || got != want {
			t.Errorf("%q: %q %v", paths, got, err)
		}
	}
	for path, want := range map[string]error{"a": nil, "./a": nil, "b": fs.ErrNotExist, "../a": fs.ErrPermission, "/a": fs.ErrPermission} {
		if got, err := s.ReadFile(ctx, path); !errors.Is(err, want) || (err == nil) != (string(got) == "A") {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	if err := s.Log(ctx, "line"); err != nil || !slices.Equal(s.Logs(), []string{"line"}) || len(s.Reads()) != 5 {
		t.Errorf("%q %q %v", s.Logs(), s.Reads(), err)
	}
	s = &Services{Before: refuse}
	if err := s.Log(ctx, "x"); !errors.Is(err, pluginerr.ErrUnsupported) || len(s.Logs()) != 0 {
		t.Errorf("%v", err)
	}
	if _, err := (&Services{}).RunAgent(ctx, hostservice.Ask{}); !errors.Is(err, pluginerr.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"coven-reviewer-style": "reviewer", "/x/y/coven-model-a-1": "model", "coven-judge-x": "", "style": "", "coven-reviewer-": "", "coven-reviewer-Big": "",
	} {
		if got, err := KindOf(name); string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// Run returns an error and no results for a file that is not a plugin, and for a canceled run.
func TestNothingToRun(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "coven-reviewer-plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ file, want string }{
		{plain, "not an executable file"}, {filepath.Dir(plain), "not named coven-KIND-NAME"}, {plain + "x", "no such file"},
	} {
		if results, err := Run(t.Context(), tc.file, "", Options{}); err == nil || !strings.Contains(err.Error(), tc.want) || len(results) != 0 {
			t.Errorf("%s: %v %v", tc.file, results, err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), self, "judge", Options{}); err == nil || !strings.Contains(err.Error(), `"judge" is not a plugin kind`) {
		t.Error(err)
	}
	stopped := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := Options{Args: []string{"serve", "reviewer", "good"}, Report: func(r Result) {
		if r.Name == "handshake" {
			cancel(stopped)
		}
	}}
	if results, err := Run(ctx, self, "reviewer", o); !errors.Is(err, stopped) || len(results) != 2 {
		t.Errorf("%v %v", results, err)
	}
}

// The harness starts a plugin like coven for the calls of a test.
func TestStart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	named := filepath.Join(t.TempDir(), "coven-reviewer-good")
	if err := os.Symlink(self, named); err != nil {
		t.Fatal(err)
	}
	p := Start(t, named, Options{Args: []string{"serve", "reviewer", "good"}})
	r, err := p.Reviewer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host := &Services{}
	review, err := r.Review(t.Context(), reviewer.Change{Task: reviewer.Task{ID: "t-1"}}, host)
	if err != nil || review.Verdict != reviewer.Pass || !slices.Equal(host.Logs(), []string{"looked at t-1"}) {
		t.Errorf("%+v %v %q", review, err, host.Logs())
	}
	if _, err := p.Arbiter(t.Context()); err == nil || !strings.Contains(err.Error(), "this is a reviewer") {
		t.Error(err)
	}
}
