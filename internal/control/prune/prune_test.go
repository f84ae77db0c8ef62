package prune

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
)

// fixture is a project with tasks that have or have not landed.
type fixture struct {
	*testing.T
	project *project.Project
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	root, home := t.TempDir(), t.TempDir()
	env := map[string]string{
		"HOME": home, "PATH": os.Getenv("PATH"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.invalid", "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.invalid",
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	f := &fixture{T: t}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		f.must(cmd.Run())
	}
	e := project.NewEnv("test")
	e.Workdir = func() (string, error) { return root, nil }
	e.Getenv = func(name string) string { return env[name] }
	p, err := project.Open(t.Context(), e)
	f.must(err)
	f.project = p
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// task creates a worktree with a commit, and a session that ended with the event end.
func (f *fixture) task(id string, end event.Type) *worktree.Worktree {
	f.Helper()
	p, ctx := f.project, f.Context()
	w, err := worktree.Add(ctx, p.Repo, worktree.AddRequest{TaskID: id, Base: "main"})
	f.must(err)
	f.must(os.WriteFile(filepath.Join(w.Path, id), []byte(id), 0o600))
	made, err := commit.Create(ctx, w, commit.Request{Message: id, TargetTip: f.tip()})
	f.must(err)
	s, err := session.Create(p.Repo.Root, id, id, time.Now)
	f.must(err)
	f.must(s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: id, Project: p.Repo.Root, Target: "refs/heads/main"}))
	ended := event.Ended{}
	if end == event.SessionCompleted {
		f.must(s.Append(event.Event{Type: event.LandDone}, event.Landing{Target: "refs/heads/main", New: made.Oid, Tip: made.Oid}))
		ended.Commit = made.Oid
	}
	if end != "" {
		f.must(s.Append(event.Event{Type: end}, ended))
	}
	f.must(s.Close())
	return w
}

func (f *fixture) tip() string {
	f.Helper()
	out, err := exec.CommandContext(f.Context(), "git", "-C", f.project.Repo.Root, "rev-parse", "main").Output()
	f.must(err)
	return strings.TrimSpace(string(out))
}

// run prunes, and returns the result for each task.
func (f *fixture) run(dry bool) map[string]string {
	f.Helper()
	items, err := Run(f.Context(), f.project, Request{DryRun: dry, Warn: func(text string) { f.Errorf("warned: %s", text) }})
	f.must(err)
	found := map[string]string{}
	for _, item := range items {
		found[item.Task] = item.Kind
		if item.Kept != "" {
			found[item.Task] += " kept, next: " + item.Next
		}
	}
	return found
}

func (f *fixture) equal(what string, got, want map[string]string) {
	f.Helper()
	if len(got) != len(want) {
		f.Errorf("%s: %v, want %v", what, got, want)
		return
	}
	for task, kind := range want {
		if got[task] != kind {
			f.Errorf("%s: %s is %q, want %q", what, task, got[task], kind)
		}
	}
}

// Worktrees that have landed and contain nothing else are removed, after a dry run has only listed them.
// All other worktrees stay.
func TestRun(t *testing.T) {
	f := newFixture(t)
	trees := map[string]*worktree.Worktree{
		"landed": f.task("landed", event.SessionCompleted), "changed": f.task("changed", event.SessionCompleted), "claimed": f.task("claimed", event.SessionCompleted),
		"failed": f.task("failed", event.SessionFailed), "cancelled": f.task("cancelled", event.SessionCancelled), "interrupted": f.task("interrupted", ""),
	}
	f.must(os.WriteFile(filepath.Join(trees["changed"].Path, "mine"), nil, 0o600))
	_, err := claim.Acquire(t.Context(), f.project.Repo, claim.Claim{Task: "claimed", Holder: "h", Session: "s", Expires: time.Now().Add(time.Hour)}, "")
	f.must(err)
	want := map[string]string{"landed": Worktree, "changed": Worktree + " kept, next: coven worktree remove changed"}
	f.equal("a dry run", f.run(true), want)
	for task, w := range trees {
		if _, err := os.Stat(w.Path); err != nil {
			t.Errorf("after the dry run, %s: %v", task, err)
		}
	}
	f.equal("the run", f.run(false), want)
	for task, w := range trees {
		if _, err := os.Stat(w.Path); (err == nil) == (task == "landed") {
			t.Errorf("after the run, %s: %v", task, err)
		}
	}
	delete(want, "landed")
	f.equal("again", f.run(false), want)
}

// The remains of a worktree whose directory a person removed are removed, unless its session can continue.
func TestRunForgets(t *testing.T) {
	f := newFixture(t)
	for _, task := range []string{"cancelled", "interrupted"} {
		end := event.SessionCancelled
		if task == "interrupted" {
			end = ""
		}
		f.must(os.RemoveAll(f.task(task, end).Path))
	}
	f.equal("a dry run", f.run(true), map[string]string{"cancelled": Registration})
	f.equal("the run", f.run(false), map[string]string{"cancelled": Registration})
	f.equal("again", f.run(false), map[string]string{})
	if _, err := worktree.Leftover(t.Context(), f.project.Repo, "cancelled"); err != nil {
		t.Errorf("the branch of unlanded work: %v", err)
	}
}

// If a session cannot be read, nothing is removed: it may own anything.
func TestRunBesideDamage(t *testing.T) {
	f := newFixture(t)
	w := f.task("landed", event.SessionCompleted)
	dir := filepath.Join(f.project.Repo.Root, session.Dir, "2026-01-01-damaged")
	f.must(os.MkdirAll(dir, 0o700))
	f.must(os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte("what\nwhat\n"), 0o600))
	if items, err := Run(t.Context(), f.project, Request{}); err == nil || len(items) > 0 {
		t.Errorf("%v, %v", items, err)
	}
	if _, err := os.Stat(w.Path); err != nil {
		t.Error(err)
	}
}
