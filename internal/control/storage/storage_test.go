package storage

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/snapshot"
)

// now is the fixed time of the tests.
func now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

const day = 24 * time.Hour

// opened returns a project with one commit, whose user has no settings.
func opened(t *testing.T) *project.Project {
	t.Helper()
	root, home := t.TempDir(), t.TempDir()
	env := map[string]string{
		"HOME": home, "PATH": os.Getenv("PATH"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.invalid", "GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@example.invalid",
	}
	for name, value := range env {
		t.Setenv(name, value)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	e := project.NewEnv("test")
	e.Workdir = func() (string, error) { return root, nil }
	e.Getenv = func(name string) string { return env[name] }
	e.Now = now
	p, err := project.Open(t.Context(), e)
	must(t, err)
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// running starts a session of a task that runs until it is closed.
func running(t *testing.T, p *project.Project, task string) *session.Session {
	t.Helper()
	s, err := session.Create(p.Repo.Root, task, task, now)
	must(t, err)
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: task, Project: p.Repo.Root}))
	return s
}

// Snapshots expire if their session landed or was removed longer ago than the setting, and if nothing needs
// them.
func TestExpired(t *testing.T) {
	p := opened(t)
	old, young := now().Add(-p.Config.GC.Keep-time.Second), now().Add(-p.Config.GC.Keep+time.Second)
	_, err := worktree.Add(t.Context(), p.Repo, worktree.AddRequest{TaskID: "has-tree", Base: "main"})
	must(t, err)
	_, err = claim.Acquire(t.Context(), p.Repo, claim.Claim{Task: "x", Holder: "h", Session: "claimed", Expires: now().Add(time.Hour)}, "")
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(p.Repo.Root, session.DamagedDir, "aside"), 0o700))
	must(t, os.MkdirAll(filepath.Join(p.Repo.Root, session.Dir, "unreadable"), 0o700))
	var sessions []session.Summary
	for _, s := range []session.Summary{
		{ID: "landed", Status: session.Completed, Ended: old},
		{ID: "landed-lately", Status: session.Completed, Ended: young},
		{ID: "failed", Status: session.Failed, Ended: old},
		{ID: "cancelled", Status: session.Cancelled, Ended: old},
		{ID: "waiting", Status: session.Waiting},
		{ID: "landed-with-tree", Task: "has-tree", Status: session.Completed, Ended: old},
	} {
		s.Task = cmp.Or(s.Task, "task-of-"+s.ID)
		sessions = append(sessions, s)
		must(t, os.MkdirAll(filepath.Join(p.Repo.Root, session.Dir, s.ID), 0o700))
	}
	var refs []snapshot.Ref
	for _, s := range sessions {
		refs = append(refs, snapshot.Ref{Name: s.ID, Time: old})
	}
	for name, at := range map[string]time.Time{"removed": old, "removed-lately": young, "claimed": old, "aside": old, "unreadable": old} {
		refs = append(refs, snapshot.Ref{Name: name, Time: at})
	}
	found, err := expired(t.Context(), p, sessions, refs)
	must(t, err)
	got := map[string]string{}
	for _, e := range found {
		got[e.Session] = e.Reason
		if !e.Since.Equal(old) {
			t.Errorf("%s since %s", e.Session, e.Since)
		}
	}
	if len(got) != 2 || got["landed"] != Landed || got["removed"] != Removed {
		t.Errorf("expired: %v", got)
	}
}

// While a task runs, nothing is collected, and the error names it.
func TestCollectWhileRunning(t *testing.T) {
	p := opened(t)
	s := running(t, p, "busy")
	_, err := Collect(t.Context(), p, false)
	if !errors.Is(err, errRunning) || exit.Code(err) != exit.Person || exit.Next(err) != "coven status" || err.Error() != "task busy is running: coven gc works when no task does" {
		t.Errorf("%v, exit %d, next %q", err, exit.Code(err), exit.Next(err))
	}
	if c, err := Collect(t.Context(), p, true); err != nil || !c.DryRun {
		t.Errorf("a dry run: %+v, %v", c, err)
	}
	must(t, s.Close())
	c, err := Collect(t.Context(), p, false)
	if err != nil || c.Loose == 0 || c.LooseNow != 0 {
		t.Errorf("afterwards: %+v, %v", c, err)
	}
}

// An automatic collection happens once a day. If a task runs or the setting is off, it does not count.
func TestCollectAuto(t *testing.T) {
	p := opened(t)
	at := now()
	p.Env.Now = func() time.Time { return at }
	collected := func() bool {
		t.Helper()
		must(t, CollectAuto(t.Context(), p))
		return snapshot.LooseObjects(p.Repo) == 0
	}
	if collected() {
		t.Error("it was collected on the first day")
	}
	at = at.Add(day)
	p.Config.GC.Auto = false
	if collected() {
		t.Error("it was collected although the setting is off")
	}
	p.Config.GC.Auto = true
	s := running(t, p, "busy")
	if collected() {
		t.Error("it was collected while a task ran")
	}
	must(t, s.Close())
	if !collected() {
		t.Error("it was not collected after the task")
	}
	cmd := exec.CommandContext(t.Context(), "git", "commit", "-q", "--allow-empty", "-m", "more")
	cmd.Dir = p.Repo.Root
	must(t, cmd.Run())
	at = at.Add(day - time.Second)
	if collected() {
		t.Error("it was collected twice a day")
	}
	at = at.Add(time.Second)
	if !collected() {
		t.Error("it was not collected on the next day")
	}
}

// While a task runs, many objects are packed, and no snapshot is deleted.
func TestPackWhileRunning(t *testing.T) {
	p := opened(t)
	at := now()
	p.Env.Now = func() time.Time { return at }
	s := running(t, p, "busy")
	defer s.Close() //nolint:errcheck // the test is over
	must(t, CollectAuto(t.Context(), p))
	more := func() {
		for range 51 {
			for _, args := range [][]string{{"-c", "maintenance.auto=false", "commit", "-q", "--allow-empty", "-m", "more"}, {"repack", "-q", "-d"}} { // git's own gc would race
				cmd := exec.CommandContext(t.Context(), "git", args...)
				cmd.Dir = p.Repo.Root
				must(t, cmd.Run())
			}
		}
	}
	packs := func() int {
		found, err := filepath.Glob(filepath.Join(p.Repo.GitDir, "objects/pack/*.pack"))
		must(t, err)
		return len(found)
	}
	more()
	p.Config.GC.Auto = false
	must(t, CollectAuto(t.Context(), p))
	if packs() != 51 {
		t.Errorf("with the setting off: %d packs", packs())
	}
	p.Config.GC.Auto = true
	for _, after := range []time.Duration{0, 2 * day} { // within the day, and when a collection is due
		more()
		at = at.Add(after)
		must(t, CollectAuto(t.Context(), p))
		if packs() > 10 {
			t.Errorf("after %s: %d packs", after, packs())
		}
	}
}

// Everything on disk has a kind, a size and the command that frees it, the largest first.
func TestMeasure(t *testing.T) {
	p := opened(t)
	w, err := worktree.Add(t.Context(), p.Repo, worktree.AddRequest{TaskID: "no-session", Base: "main"})
	must(t, err)
	caches := sandbox.Caches(p.Env.CacheDir(), p.Repo.GitDir)
	for file, size := range map[string]int{
		filepath.Join(w.Path, "file"):                                                        100 << 10,
		filepath.Join(caches, w.Name, "go-build", "x"):                                       300 << 10,
		filepath.Join(caches, "gone", "go-build", "x"):                                       200 << 10,
		filepath.Join(caches, sandbox.KeptName, "go-build", "x"):                             500 << 10,
		filepath.Join(filepath.Dir(w.Path), ".pool", "old", "file"):                          400 << 10,
		filepath.Join(p.Repo.Root, session.Dir, "2026-05-01-x", session.LogsDir, "work.log"): 600 << 10,
		filepath.Join(p.Repo.Root, session.Dir, "2026-05-01-x", "events.jsonl"):              700 << 10,
	} {
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.WriteFile(file, make([]byte, size), 0o600))
	}
	use, err := Measure(t.Context(), p)
	must(t, err)
	var kinds []string
	sum := int64(0)
	for _, item := range use.Items {
		sum += item.Bytes
		if item.Bytes >= 100<<10 {
			kinds = append(kinds, item.Kind+" "+cmp.Or(item.State, item.Task))
		}
	}
	want := []string{"sessions ", "logs ", "cache for later tasks", "pool ", "cache no session", "cache of a task that is gone", "worktree no session"}
	if !slices.Equal(kinds, want) {
		t.Errorf("measured %q, want %q", kinds, want)
	}
	if use.Bytes != sum || use.Unread != 0 {
		t.Errorf("%d bytes in all, not %d; %d unread", use.Bytes, sum, use.Unread)
	}
	for _, item := range use.Items {
		switch item.State {
		case "for later tasks", "of a task that is gone":
			if item.Next != "rm -rf "+item.Path {
				t.Errorf("%s: next %q", item.Path, item.Next)
			}
		case "no session":
			if item.Task != "no-session" || item.Next != "coven worktree remove no-session" {
				t.Errorf("%s: next %q", item.Path, item.Next)
			}
		}
	}
}
