package task

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// site is the environment of a tracker that uses bd.
type site struct {
	dir     string // a checkout
	program string
	env     []string
}

// bdSite creates a repository with a bd database that contains issues. It uses the fake bd unless a
// program is given.
func bdSite(t *testing.T, program string, issues []byte, env ...string) site {
	t.Helper()
	s := site{dir: place(t, map[string]string{"f": ""}), program: program}
	if program == "" {
		s.program = fakeProgram(t)
	}
	git(t, s.dir, "init", "-q")
	s.env = []string{
		"PATH=" + filepath.Dir(s.program) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "DO_NOT_TRACK=1",
	}
	s.env = append(s.env, env...)
	s.bd(t, "init", "--prefix=t", "--stealth", "--skip-agents", "--skip-hooks", "--non-interactive")
	if issues != nil {
		file := filepath.Join(t.TempDir(), "issues.jsonl")
		if err := os.WriteFile(file, issues, 0o644); err != nil {
			t.Fatal(err)
		}
		s.bd(t, "import", file)
	}
	return s
}

// fakeProgram returns this test binary under the name bd.
func fakeProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), BD)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// bd runs the program like a user.
func (s site) bd(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("bd %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// cli returns the tracker like Open, with additional environment variables.
func (s site) cli(t *testing.T, env ...string) *CLI {
	t.Helper()
	tracker, err := Open(Options{
		Dir: s.dir, MainCheckout: s.dir, LockDir: t.TempDir(), Getenv: environment(env...), Environ: append(s.env[:len(s.env):len(s.env)], env...),
		LookPath: func(string) (string, error) { return s.program, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	c, ok := tracker.(*CLI)
	if !ok {
		t.Fatalf("%T keeps the tasks", tracker)
	}
	return c
}

// TestTrackers checks the contract of Tracker.
func TestTrackers(t *testing.T) {
	kinds := map[string]func(t *testing.T) Tracker{
		"file":    func(t *testing.T) Tracker { return tracker(t, "") },
		"fake bd": func(t *testing.T) Tracker { return bdSite(t, "", nil).cli(t) },
		"bd":      func(t *testing.T) Tracker { return bdSite(t, realBD(t), nil).cli(t) },
	}
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			if kind == "bd" {
				realBD(t) // skips only once
			}
			for name, check := range map[string]func(*testing.T, Tracker){
				"story": story, "ready": readyOrder, "fence": fenced, "twice": twice, "claims": claims,
				"missing": missingTask, "add": adding, "verbatim": verbatim, "edit": editing,
			} {
				t.Run(name, func(t *testing.T) { check(t, open(t)) })
			}
		})
	}
}

// realBD returns the path of the real bd.
func realBD(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("COVEN_REAL_BD"); path != "" {
		return path
	}
	path, err := exec.LookPath(BD)
	if err != nil {
		t.Skip("the real bd is neither in COVEN_REAL_BD nor on PATH: the fake one, which is held to captures of it, stands in")
	}
	return path
}

// add adds a task, or fails the test.
func add(t *testing.T, tr Tracker, n New) Task {
	t.Helper()
	got, err := tr.Add(t.Context(), n)
	if err != nil {
		t.Fatalf("add %q: %v", n.Title, err)
	}
	return got
}

// is checks a task in the tracker, and the result of the change.
func is(t *testing.T, tr Tracker, got Task, err error, want Task) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	now, err := tr.Get(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	for what, one := range map[string]Task{"returned": got, "kept": now} {
		if one.Status != want.Status || one.Assignee != want.Assignee || one.Notes != want.Notes || one.CloseReason != want.CloseReason {
			t.Errorf("%s: %s of %q, notes %q, reason %q; want %s of %q, notes %q, reason %q", what,
				one.Status, one.Assignee, one.Notes, one.CloseReason, want.Status, want.Assignee, want.Notes, want.CloseReason)
		}
	}
}

// story checks a complete life cycle of a task.
func story(t *testing.T, tr Tracker) {
	if all, err := tr.List(t.Context()); err != nil || len(all) != 0 || all == nil {
		t.Fatalf("a new tracker has %v, %v", all, err)
	}
	first := add(t, tr, New{Title: "first", Description: "d", Acceptance: []string{"a", "b"}, Priority: 1, Labels: []string{"l, m", "n"}, Type: "bug"})
	second := add(t, tr, New{Title: "second", Priority: 0, After: []string{first.ID, first.ID}})
	got, err := tr.Get(t.Context(), first.ID)
	if err != nil || got.Description != "d" || got.Acceptance != "- [ ] a\n- [ ] b" || got.Priority != 1 || got.Type != "bug" || strings.Join(got.Labels, "|") != "l, m|n" {
		t.Errorf("added %+v, %v", got, err)
	}
	if ready, err := tr.Ready(t.Context()); err != nil || ids(ready) != first.ID {
		t.Errorf("ready %s, %v", ids(ready), err)
	}
	if on, err := tr.Blockers(t.Context(), second.ID); err != nil || strings.Join(on, " ") != first.ID {
		t.Errorf("blockers %v, %v", on, err)
	}
	got, err = tr.Claim(t.Context(), first.ID, "coven/1")
	is(t, tr, got, err, Task{Status: StatusInProgress, Assignee: "coven/1"})
	if got.StartedAt.IsZero() {
		t.Error("not started")
	}
	got, err = tr.Block(t.Context(), first.ID, "coven/1", "no key")
	is(t, tr, got, err, Task{Status: StatusBlocked, Notes: "no key"})
	got, err = tr.Claim(t.Context(), first.ID, "coven/2")
	is(t, tr, got, err, Task{Status: StatusInProgress, Assignee: "coven/2", Notes: "no key"})
	got, err = tr.Release(t.Context(), first.ID, "coven/2", "given back")
	is(t, tr, got, err, Task{Status: StatusOpen, Notes: "no key\ngiven back"})
	got, err = tr.Claim(t.Context(), first.ID, "coven/3")
	is(t, tr, got, err, Task{Status: StatusInProgress, Assignee: "coven/3", Notes: "no key\ngiven back"})
	got, err = tr.Close(t.Context(), first.ID, "coven/3", "done: it works")
	is(t, tr, got, err, Task{Status: StatusClosed, Assignee: "coven/3", Notes: "no key\ngiven back", CloseReason: "done: it works"})
	if ready, err := tr.Ready(t.Context()); err != nil || ids(ready) != second.ID {
		t.Errorf("ready then %s, %v", ids(ready), err)
	}
	if all, err := tr.List(t.Context()); err != nil || ids(all) != second.ID+" "+first.ID {
		t.Errorf("all %s, %v", ids(all), err)
	}
}

func readyOrder(t *testing.T, tr Tracker) {
	var want []string
	for _, p := range []int{0, 2, 3} {
		want = append(want, add(t, tr, New{Title: fmt.Sprint("p", p), Priority: p}).ID)
	}
	last := add(t, tr, New{Title: "after", Priority: 4})
	add(t, tr, New{Title: "epic", Type: "epic"})
	add(t, tr, New{Title: "behind", Priority: 0, After: []string{last.ID}})
	mine := add(t, tr, New{Title: "mine", Priority: 0})
	if _, err := tr.Claim(t.Context(), mine.ID, "me"); err != nil {
		t.Fatal(err)
	}
	stuck := add(t, tr, New{Title: "stuck", Priority: 0})
	if _, err := tr.Block(t.Context(), stuck.ID, "", "why"); err != nil {
		t.Fatal(err)
	}
	want = append(want, last.ID)
	ready, err := tr.Ready(t.Context())
	if err != nil || ids(ready) != strings.Join(want, " ") {
		t.Errorf("ready %s, %v; want %v", ids(ready), err, want)
	}
}

// fenced checks that only a person can change a task that another actor has claimed.
func fenced(t *testing.T, tr Tracker) {
	a := add(t, tr, New{Title: "a"})
	if _, err := tr.Claim(t.Context(), a.ID, "me"); err != nil {
		t.Fatal(err)
	}
	before, err := tr.Get(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(context string) (Task, error){
		"close":   func(actor string) (Task, error) { return tr.Close(t.Context(), a.ID, actor, "r") },
		"block":   func(actor string) (Task, error) { return tr.Block(t.Context(), a.ID, actor, "n") },
		"release": func(actor string) (Task, error) { return tr.Release(t.Context(), a.ID, actor, "n") },
	} {
		_, err := change("you")
		owned := (*ClaimedError)(nil)
		if !errors.As(err, &owned) || owned.Owner != "me" || owned.ID != a.ID {
			t.Errorf("%s by another: %v", name, err)
		}
	}
	is(t, tr, before, nil, Task{Status: StatusInProgress, Assignee: "me"})
	got, err := tr.Release(t.Context(), a.ID, "", "by hand")
	is(t, tr, got, err, Task{Status: StatusOpen, Notes: "by hand"})
	got, err = tr.Block(t.Context(), a.ID, "you", "nobody's")
	is(t, tr, got, err, Task{Status: StatusBlocked, Notes: "by hand\nnobody's"})
	got, err = tr.Claim(t.Context(), a.ID, "me")
	is(t, tr, got, err, Task{Status: StatusInProgress, Assignee: "me", Notes: "by hand\nnobody's"})
	got, err = tr.Close(t.Context(), a.ID, "", "by hand")
	is(t, tr, got, err, Task{Status: StatusClosed, Assignee: "me", Notes: "by hand\nnobody's", CloseReason: "by hand"})
	got, err = tr.Close(t.Context(), a.ID, "you", "again")
	is(t, tr, got, err, Task{Status: StatusClosed, Assignee: "me", Notes: "by hand\nnobody's", CloseReason: "again"})
	for _, change := range []func(string) (Task, error){
		func(n string) (Task, error) { return tr.Block(t.Context(), a.ID, "you", n) },
		func(n string) (Task, error) { return tr.Release(t.Context(), a.ID, "you", n) },
	} {
		got, err = change("late")
		is(t, tr, got, err, Task{Status: StatusClosed, Assignee: "me", Notes: "by hand\nnobody's", CloseReason: "again"})
	}
}

// twice checks that repeating a change has no effect.
func twice(t *testing.T, tr Tracker) {
	a := add(t, tr, New{Title: "a"})
	steps := []func() (Task, error){
		func() (Task, error) { return tr.Claim(t.Context(), a.ID, "me") },
		func() (Task, error) { return tr.Block(t.Context(), a.ID, "me", "line 1\nline 2") },
		func() (Task, error) { return tr.Claim(t.Context(), a.ID, "you") },
		func() (Task, error) { return tr.Release(t.Context(), a.ID, "you", "back") },
		func() (Task, error) { return tr.Close(t.Context(), a.ID, "you", "done") },
	}
	for i, step := range steps {
		if _, err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		first, err := tr.Get(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		got, err := step()
		is(t, tr, got, err, first)
		if !got.UpdatedAt.Equal(first.UpdatedAt) {
			t.Errorf("step %d made again changed the task", i)
		}
	}
}

func claims(t *testing.T, tr Tracker) {
	a, b := add(t, tr, New{Title: "a"}), add(t, tr, New{Title: "b"})
	c := add(t, tr, New{Title: "c", After: []string{a.ID, b.ID}})
	blocked, owned, status := (*BlockedError)(nil), (*ClaimedError)(nil), (*StatusError)(nil)
	if _, err := tr.Claim(t.Context(), c.ID, "me"); !errors.As(err, &blocked) || len(blocked.Blockers) != 2 {
		t.Errorf("a blocked one: %v", err)
	}
	if _, err := tr.Claim(t.Context(), a.ID, ""); err == nil {
		t.Error("claimed for nobody")
	}
	if _, err := tr.Claim(t.Context(), a.ID, "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Claim(t.Context(), a.ID, "you"); !errors.As(err, &owned) || owned.Owner != "me" || !errors.Is(err, ErrClaimed) {
		t.Errorf("another's: %v", err)
	}
	if _, err := tr.Close(t.Context(), c.ID, "me", "landed all the same"); err != nil {
		t.Errorf("close a blocked one: %v", err)
	}
	if _, err := tr.Claim(t.Context(), c.ID, "me"); !errors.As(err, &status) || status.Status != StatusClosed || !errors.Is(err, ErrNotClaimable) {
		t.Errorf("a closed one: %v", err)
	}
}

func missingTask(t *testing.T, tr Tracker) {
	a := add(t, tr, New{Title: "a"})
	_, part, _ := strings.Cut(a.ID, "-")
	for _, id := range []string{"", "nope", "--help", "-x", "two words", "nul\x00", part, a.ID[:len(a.ID)-1], "$(touch x)"} {
		_, got := tr.Get(t.Context(), id)
		_, blockers := tr.Blockers(t.Context(), id)
		_, claimed := tr.Claim(t.Context(), id, "me")
		_, closed := tr.Close(t.Context(), id, "", "")
		_, blocked := tr.Block(t.Context(), id, "me", "n")
		_, released := tr.Release(t.Context(), id, "", "n")
		_, edited := tr.Edit(t.Context(), id, Edit{Title: new("x")})
		for i, err := range []error{got, blockers, claimed, closed, blocked, released, edited} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%q, call %d: %v", id, i, err)
			}
		}
		if _, err := tr.Add(t.Context(), New{Title: "x", After: []string{id}}); !errors.Is(err, ErrNotFound) {
			t.Errorf("after %q: %v", id, err)
		}
	}
	is(t, tr, a, nil, Task{Status: StatusOpen})
	if all, err := tr.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%d tasks, %v", len(all), err)
	}
}

func adding(t *testing.T, tr Tracker) {
	for name, n := range map[string]New{
		"no title": {Title: " \n"}, "low": {Title: "x", Priority: 5}, "high": {Title: "x", Priority: -1}, "label": {Title: "x", Labels: []string{""}},
	} {
		if _, err := tr.Add(t.Context(), n); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := tr.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d tasks, %v", len(all), err)
	}
	if tr.Kind() != JSONL { // coven itself does not restrict types
		if _, err := tr.Add(t.Context(), New{Title: "x", Type: "nosuch"}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "nosuch") {
			t.Errorf("type: %v", err)
		}
	}
	start := time.Now().Add(-time.Minute)
	if got := add(t, tr, New{Title: "x"}); got.Status != StatusOpen || got.Type != "task" || got.CreatedAt.Before(start) || got.Assignee != "" {
		t.Errorf("got %+v", got)
	}
}

// editing checks that an edit changes the fields that it names and no others.
func editing(t *testing.T, tr Tracker) {
	a := add(t, tr, New{Title: "a", Description: "d", Acceptance: []string{"one", "two"}, Priority: 1, Labels: []string{"l", "m, n"}})
	if _, err := tr.Claim(t.Context(), a.ID, "me"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Edit{
		"title": {Title: new(" ")}, "priority": {Priority: new(5)}, "label": {Labels: &[]string{""}}, "size": {Design: new(strings.Repeat("d", MaxText+1))},
	} {
		if _, err := tr.Edit(t.Context(), a.ID, c); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want, err := tr.Get(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	edits := func(e Edit) {
		t.Helper()
		got, err := tr.Edit(t.Context(), a.ID, e)
		is(t, tr, got, err, want)
		for range 2 {
			if got.Title != want.Title || got.Description != want.Description || got.Acceptance != want.Acceptance || got.Design != want.Design ||
				got.Priority != want.Priority || strings.Join(got.Labels, "|") != strings.Join(want.Labels, "|") {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if got, err = tr.Get(t.Context(), a.ID); err != nil {
				t.Fatal(err)
			}
		}
		if again, err := tr.Edit(t.Context(), a.ID, e); err != nil || !again.UpdatedAt.Equal(got.UpdatedAt) {
			t.Errorf("edited again: %v, at %s after %s", err, again.UpdatedAt, got.UpdatedAt)
		}
	}
	edits(Edit{})
	want.Title, want.Description = "--title", "-p\n$(x) <é>"
	edits(Edit{Title: &want.Title, Description: &want.Description})
	want.Acceptance, want.Design, want.Priority, want.Labels = "- [ ] three", "the design", 0, []string{"k", "m, n"}
	edits(Edit{Acceptance: &[]string{"three"}, Design: &want.Design, Priority: &want.Priority, Labels: &want.Labels})
	want.Acceptance, want.Design, want.Labels = "", "", nil
	edits(Edit{Acceptance: &[]string{}, Design: &want.Design, Labels: &want.Labels})
}

// verbatim checks that texts are preserved and never interpreted as flags or commands.
func verbatim(t *testing.T, tr Tracker) {
	for _, w := range []string{
		"--claim", "-p", "--", "-", "@/etc/passwd", "$(rm -rf /); `id` 'q' \"q\" | & > < \\", "🧙‍♀️ emoji, 日本", "a, b=c", "line\nbreak <b>&amp;",
		strings.Repeat("long ", 4000),
	} {
		title := strings.TrimSpace(strings.ReplaceAll(w[:min(len(w), 100)], "\n", " "))
		got := add(t, tr, New{Title: title, Description: w + "\n.", Acceptance: []string{w}, Labels: []string{title}})
		if _, err := tr.Claim(t.Context(), got.ID, title); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Block(t.Context(), got.ID, title, w); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Close(t.Context(), got.ID, "", w); err != nil {
			t.Fatal(err)
		}
		now, err := tr.Get(t.Context(), got.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.Title != title || now.Description != w+"\n." || now.Acceptance != checklist([]string{w}) || now.Notes != w || now.CloseReason != w || now.Labels[0] != title {
			t.Errorf("%q became %+v", w, now)
		}
	}
}
