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
	"github.com/coven-run/coven/internal/session/collision"
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
	s := beginOn(t, p, "refs/heads/main", id, file, text)
	t.Cleanup(func() { _ = s.Close() })
	return s.ID
}

func beginOn(t *testing.T, p *project.Project, target, id, file, text string) *session.Session {
	t.Helper()
	ctx := t.Context()
	tip, err := exec.Command("git", "-C", p.Repo.Root, "rev-parse", "main").Output()
	must(t, err)
	base := strings.TrimSpace(string(tip))
	s, err := session.Create(p.Repo.Root, id, "Do "+id, time.Now)
	must(t, err)
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Base: base, Target: target}))
	_, err = claim.Acquire(ctx, p.Repo, claim.Claim{Task: id, Holder: "coven/host/1", Session: s.ID, Attempt: 1, Expires: time.Now().Add(time.Hour)}, "")
	must(t, err)
	w, err := worktree.Add(ctx, p.Repo, worktree.AddRequest{TaskID: id, Base: base})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(w.Path, file), []byte(text), 0o600))
	_, err = snapshot.Take(ctx, w, s.ID, "now")
	must(t, err)
	return s
}

// newRadar returns the radar of a new repository. said are the notices so far, and see compares after an event of a session.
func newRadar(t *testing.T, setting string) (p *project.Project, r *Radar, said *[]string, see func(id string)) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), identity...)
		must(t, cmd.Run())
	}
	e := project.NewEnv("test")
	e.Workdir = func() (string, error) { return dir, nil }
	e.Getenv = func(string) string { return "" }
	p, err := project.Open(t.Context(), e)
	must(t, err)
	p.Config.Run = config.Run{Collisions: setting}
	said = new([]string)
	r = New(p, func(text string) { *said = append(*said, text) })
	return p, r, said, func(id string) {
		t.Helper()
		r.See(event.Event{Type: event.GateDecided, Session: id})
		must(t, r.compare(t.Context()))
	}
}

// messages returns the number of messages to the agent of a session.
func messages(t *testing.T, p *project.Project, id string) int {
	t.Helper()
	asked, err := filepath.Glob(filepath.Join(p.Repo.Root, ".coven/run/inbox", id, "*.json"))
	must(t, err)
	return len(asked)
}

// Only running agents of this process are told, if the settings say so. Tasks for other targets do not conflict.
func TestOthers(t *testing.T) {
	for setting, want := range map[string]int{Tell: 1, Serialize: 1, "warn": 0} {
		p, r, said, see := newRadar(t, setting)
		own := begin(t, p, "own", "same.txt", "one\n")
		see(own)
		foreign := begin(t, p, "foreign", "same.txt", "two\n")
		elsewhere := beginOn(t, p, "refs/heads/other", "elsewhere", "same.txt", "three\n")
		t.Cleanup(func() { _ = elsewhere.Close() })
		stopped := beginOn(t, p, "refs/heads/main", "stopped", "same.txt", "four\n")
		r.See(event.Event{Type: event.StepStarted, Session: stopped.ID})
		r.See(event.Event{Type: event.AgentUsage, Session: foreign}) // says nothing about the worktree
		must(t, stopped.Close())
		see(own)
		for id, n := range map[string]int{own: 2 * want, foreign: 0, stopped.ID: 0, elsewhere.ID: 0} {
			if got := messages(t, p, id); got != n {
				t.Errorf("%s: %s has %d messages, want %d", setting, id, got, n)
			}
		}
		if len(*said) != 3 { // each pair of own, foreign and stopped
			t.Errorf("%s: %q", setting, *said)
		}
		move := exec.Command("git", "commit", "-q", "--allow-empty", "-m", "second")
		move.Dir, move.Env = p.Repo.Root, append(os.Environ(), identity...)
		must(t, move.Run())
		see(own)
		if _, err := os.Stat(filepath.Join(p.Repo.Root, ".coven/run/collisions", foreign+".json")); err == nil {
			t.Errorf("%s: the other process compares its session itself", setting)
		}
	}
}

// A single task costs no git process. A conflict of two tasks is recorded for both, and told once.
func TestRadar(t *testing.T) {
	p, r, told, see := newRadar(t, Tell)
	dir := p.Repo.Root
	one := begin(t, p, "one", "same.txt", "one\n")
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir()) // there is no git
	see(one)
	t.Setenv("PATH", path)
	two := begin(t, p, "two", "same.txt", "two\n")
	see(two)
	see(two)
	see(one)
	found := func() map[string][]collision.Collision {
		all, err := p.Finder.Summaries()
		must(t, err)
		return collision.Of(dir, session.LiveStatuses(all))
	}
	all := found()
	if len(all[one]) != 1 || all[one][0].Task != "two" || fmt.Sprint(all[two][0].Files) != "[same.txt]" || Text(all[two][0]) != "will conflict with one in same.txt" {
		t.Errorf("%+v", all)
	}
	if said := *told; len(said) != 1 || said[0] != "tasks one and two will conflict in same.txt" {
		t.Errorf("%q", said)
	}
	for _, id := range []string{one, two} {
		if n := messages(t, p, id); n != 1 {
			t.Errorf("%s: %d messages", id, n)
		}
	}
	if at := all[one][0].Seen; time.Since(at) > time.Minute {
		t.Errorf("seen at %v", at)
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
	if said := *told; len(said) != 2 || said[1] != "task two will conflict with main in same.txt" {
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
	for want, c := range map[string]collision.Collision{
		"will conflict with two in a�[31m.txt":             {Task: "two", Files: []string{"a\x1b[31m.txt"}},
		"will conflict with main in 1, 2, 3, 4, 5":         {Target: "refs/heads/main", Files: strings.Split("12345", "")},
		"will conflict with x in 1, 2, 3, 4, 5 and 2 more": {Target: "refs/remotes/x", Files: strings.Split("1234567", "")},
	} {
		if got := Text(c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
