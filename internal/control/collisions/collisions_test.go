package collisions

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestTouches(t *testing.T) {
	t.Parallel()
	got := Touches(task.Task{Labels: []string{"bug", "touches:src/**", "touches:[", "touches:docs/{a,b}.md"}})
	if !slices.Equal(got, []string{"src/**", "docs/{a,b}.md"}) {
		t.Errorf("%q", got)
	}
	for _, test := range []struct {
		one, two string
		want     bool
	}{
		{"src/**", "src/**", true},
		{"src/**", "src/a/b.go", true},
		{"src/a/**", "src/b/**", false},
		{"src/**", "src/a/**", true},
		{"a.go", "b.go", false},
		{"*.go", "a.go", true},
		{"docs/*", "src/*", false},
	} {
		if overlap([]string{test.one}, []string{test.two}) != test.want || overlap([]string{test.two}, []string{test.one}) != test.want {
			t.Errorf("%s and %s", test.one, test.two)
		}
	}
	if overlap(nil, []string{"**"}) {
		t.Error("a task without a declaration")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var identity = []string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}

// begin begins the session of a task that changes a file, and returns its ID.
func begin(t *testing.T, p *project.Project, id, file, text string) string {
	t.Helper()
	ctx := t.Context()
	tip, err := exec.Command("git", "-C", p.Repo.Root, "rev-parse", "main").Output()
	must(t, err)
	base := strings.TrimSpace(string(tip))
	s, err := session.Create(p.Repo.Root, id, "Do "+id, time.Now)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Base: base, Target: "refs/heads/main"}))
	_, err = claim.Acquire(ctx, p.Repo, claim.Claim{Task: id, Holder: "coven/host/1", Session: s.ID, Attempt: 1, Expires: time.Now().Add(time.Hour)}, "")
	must(t, err)
	w, err := worktree.Add(ctx, p.Repo, worktree.AddRequest{TaskID: id, Base: base})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Path, file), []byte(text), 0o600))
	_, err = snapshot.Take(ctx, w, s.ID, "now")
	must(t, err)
	return s.ID
}

// A single task costs no git process. A conflict of two tasks is recorded for both, and told once.
func TestRadar(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), identity...)
		must(t, cmd.Run())
	}
	e := project.NewEnv("test")
	e.Workdir = func() (string, error) { return dir, nil }
	e.Getenv = func(string) string { return "" }
	p, err := project.Open(t.Context(), e)
	must(t, err)
	p.Config.Run = config.Run{Collisions: Tell}
	var said []string
	r := New(p, func(text string) { said = append(said, text) })
	see := func(id string) {
		r.See(event.Event{Type: event.GateDecided, Session: id})
		must(t, r.compare(t.Context()))
	}
	one := begin(t, p, "one", "same.txt", "one\n")
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir()) // there is no git
	see(one)
	t.Setenv("PATH", path)
	two := begin(t, p, "two", "same.txt", "two\n")
	see(two)
	see(two)
	see(one)
	found := func() map[string][]session.Collision {
		all, err := p.Finder.Summaries()
		must(t, err)
		return session.Collisions(dir, all)
	}
	all := found()
	if len(all[one]) != 1 || all[one][0].Task != "two" || fmt.Sprint(all[two][0].Files) != "[same.txt]" || Text(all[two][0]) != "will conflict with one in same.txt" {
		t.Errorf("%+v", all)
	}
	if len(said) != 1 || said[0] != "tasks one and two will conflict in same.txt" {
		t.Errorf("%q", said)
	}
	for _, id := range []string{one, two} {
		if asked, err := filepath.Glob(filepath.Join(dir, ".coven/run/inbox", id, "*.json")); err != nil || len(asked) != 1 {
			t.Errorf("%s: %q, %v", id, asked, err)
		}
	}
	// A third task without a file in common needs no merge.
	three := begin(t, p, "three", "other.txt", "three\n")
	see(three)
	if all = found(); len(all[three]) != 0 || len(all[one]) != 1 || len(r.results) != 3 {
		t.Errorf("%+v", all)
	}

	// The first task lands. The conflict of the second one remains, with the target, until it has taken the target in.
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), identity...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %s", args, out)
		}
		return string(out)
	}
	must(t, os.WriteFile(filepath.Join(dir, "same.txt"), []byte("one\n"), 0o600))
	git(dir, "add", "same.txt")
	git(dir, "commit", "-qm", "one")
	held, err := claim.Of(t.Context(), p.Repo, "one")
	must(t, err)
	must(t, claim.Release(t.Context(), p.Repo, "one", held.Oid))
	see(one) // its last event
	if all = found(); len(all[two]) != 1 || Text(all[two][0]) != "will conflict with main in same.txt" || len(all[three]) != 0 {
		t.Errorf("%+v", all[two])
	}
	if last := said[len(said)-1]; last != "task two will conflict with main in same.txt" || len(said) != 2 {
		t.Errorf("%q", said)
	}
	w, err := p.Repo.Find(t.Context(), "two")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Path, "same.txt"), []byte("two\n"), 0o600))
	git(w.Path, "add", "same.txt")
	git(w.Path, "commit", "-qm", "two")
	git(w.Path, "merge", "-q", "-s", "ours", "main")
	_, err = snapshot.Take(t.Context(), w, two, "merged")
	must(t, err)
	see(two)
	if all = found(); len(all[two]) != 0 {
		t.Errorf("%+v", all[two])
	}
}

// A text names at most five files, without control characters.
func TestText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]session.Collision{
		"will conflict with two in a�[31m.txt":             {Task: "two", Files: []string{"a\x1b[31m.txt"}},
		"will conflict with main in 1, 2, 3, 4, 5":         {Target: "refs/heads/main", Files: strings.Split("12345", "")},
		"will conflict with x in 1, 2, 3, 4, 5 and 2 more": {Target: "refs/remotes/x", Files: strings.Split("1234567", "")},
	} {
		if got := Text(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
