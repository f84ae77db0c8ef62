package session_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
)

// over creates a completed session of a task.
func over(t *testing.T, root, task string) *session.Session {
	t.Helper()
	s, err := session.Create(root, task, "Title of "+task, day)
	must(t, err)
	must(t, s.Freeze([]byte("v: 1\ngrimoire: {name: x}\n")))
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "Title of " + task}))
	must(t, s.Append(event.Event{Type: event.Warning}, event.Text{Text: "x"}))
	must(t, s.Append(event.Event{Type: event.SessionCompleted}, event.Ended{}))
	must(t, s.Close())
	return s
}

// A damaged record does not affect other sessions. It is listed with its task and a
// reason, blocks nothing, and can be set aside.
func TestDamagedRecord(t *testing.T) {
	lines := func(do func([][]byte) [][]byte) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, bytes.Join(do(bytes.SplitAfter(text, []byte("\n"))), nil), 0o600))
		}
	}
	instead := func(do func(string) error) func(*testing.T, string) {
		return func(t *testing.T, file string) {
			must(t, os.Remove(file))
			must(t, do(file))
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, file string)
		want   string
	}{
		"torn middle": {lines(func(l [][]byte) [][]byte { l[1] = append(l[1][:9:9], '\n'); return l }), "events.jsonl:2"},
		"bad JSON":    {lines(func(l [][]byte) [][]byte { l[0] = []byte("what\n"); return l }), "events.jsonl:1"},
		"version": {lines(func(l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte(`"v":1`), []byte(`"v":9`), 1)
			return l
		}), "unknown version 9"},
		"hole": {lines(func(l [][]byte) [][]byte { return append(l[:1:1], l[2:]...) }), "sequence number 3, want 2"},
		"wrong data": {lines(func(l [][]byte) [][]byte {
			return append(l[:1:1], []byte(`{"v":1,"seq":2,"type":"session.completed","data":[]}`+"\n"))
		}), "event 2"},
		"emptied":   {lines(func([][]byte) [][]byte { return nil }), "missing or empty"},
		"missing":   {instead(func(string) error { return nil }), "missing or empty"},
		"directory": {instead(func(file string) error { return os.Mkdir(file, 0o755) }), "not a file"},
		"pipe":      {instead(func(file string) error { return syscall.Mkfifo(file, 0o644) }), "not a file"},
		"endless":   {instead(func(file string) error { return os.Symlink("/dev/zero", file) }), "escapes"},
		"huge":      {func(t *testing.T, file string) { must(t, os.Truncate(file, 10<<30)) }, "larger than"},
		"long":      {func(t *testing.T, file string) { must(t, os.Truncate(file, 100<<20)) }, "longer than"},
		"a link": {func(t *testing.T, file string) {
			dir := filepath.Dir(file)
			must(t, os.Rename(dir, dir+".elsewhere"))
			must(t, os.Symlink(dir+".elsewhere", dir))
			t.Cleanup(func() { _ = os.RemoveAll(dir + ".elsewhere") })
		}, "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			bad := over(t, root, "bad")
			good := over(t, root, "good")
			c.damage(t, filepath.Join(bad.Dir, "events.jsonl"))
			views, err := session.List(root)
			damaged, rest := session.DamagedIn(err)
			if len(damaged) != 1 || rest != nil || damaged[0].Session != bad.ID || !strings.Contains(damaged[0].Error(), c.want) {
				t.Fatalf("list: %v, %v", err, rest)
			}
			if next := damaged[0].NextCommand(); strings.Contains(next, "make") != (name == "version") || strings.Contains(next, "@latest") {
				t.Errorf("next: %s", next)
			}
			if name != "a link" && len(views) != 1 || views[0].Task != "good" && views[1].Task != "good" {
				t.Errorf("%+v", views)
			}
			if v := damaged[0].View(); v.Status != session.Damaged || v.Detail == "" || name != "a link" && v.Task != "bad" {
				t.Errorf("view: %+v", v)
			}
			if v, err := session.NewFinder(root).OfTask("good"); err != nil || v.ID != good.ID {
				t.Errorf("good: %v, %v", v.ID, err)
			}
			if _, err := session.NewFinder(root).OfTask("none"); !errors.Is(err, session.ErrNone) {
				t.Errorf("none: %v", err)
			}
			if _, err := session.NewFinder(root).OfTask("bad"); name != "a link" && !errors.As(err, new(*session.DamagedError)) {
				t.Errorf("bad: %v", err)
			}
			if session.NeverStarted(root, bad.ID) || session.IsOver(root, bad.ID) {
				t.Error("somebody takes it for one that never began, or is over")
			}
			leftovers, err := session.FindLeftovers(root, time.Now().Add(time.Hour))
			if err != nil || len(leftovers) > 0 {
				t.Errorf("leftovers: %v, %v", leftovers, err)
			}
			at, err := session.SetAside(root, damaged[0])
			if err != nil || at != ".coven/run/damaged/"+bad.ID {
				t.Fatalf("set aside: %q, %v", at, err)
			}
			if _, err := os.Lstat(filepath.Join(root, at)); err != nil {
				t.Error(err)
			}
			if _, err := session.List(root); name != "a link" && err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// A damaged record does not matter if the task has a newer session.
func TestDamagedAndNewer(t *testing.T) {
	root := t.TempDir()
	bad := over(t, root, "t")
	must(t, os.Truncate(filepath.Join(bad.Dir, "events.jsonl"), 10<<30))
	if _, err := session.NewFinder(root).OfTask("t"); !errors.As(err, new(*session.DamagedError)) {
		t.Fatalf("%v", err)
	}
	s, err := session.Create(root, "t", "Again", func() time.Time { return day().Add(time.Hour) })
	must(t, err)
	defer s.Close() //nolint:errcheck // the test is over
	must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{}))
	if v, err := session.NewFinder(root).OfTask("t"); err != nil || v.ID != s.ID {
		t.Errorf("%v, %v", v.ID, err)
	}
}

// A session whose plan is missing or invalid is damaged and cannot continue. An ended session needs no
// plan.
func TestPlanIsMissing(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	must(t, s.Append(event.Event{Type: event.SessionWaiting}, event.Waiting{Reason: "review"}))
	must(t, s.Close())
	spoil := func(file string) error { return os.WriteFile(file, []byte("v: 1\n# grimoire:\n"), 0o600) }
	for _, change := range []func(string) error{spoil, os.Remove, func(file string) error { return syscall.Mkfifo(file, 0o600) }, func(file string) error {
		return errors.Join(os.Remove(file), os.WriteFile(file, nil, 0o600), os.Truncate(file, 10<<30))
	}} {
		must(t, change(filepath.Join(s.Dir, "plan.yaml")))
		v, err := session.Load(s.Dir)
		if err != nil || v.Shown().Status != session.Damaged || !strings.Contains(v.Shown().Detail, "plan.yaml") {
			t.Errorf("%v, %+v", err, v)
		}
		if plan, err := session.Plan(s.Dir); err == nil && !strings.HasPrefix(string(plan), "v: 1\n# ") {
			t.Error("it has a plan")
		}
	}
	must(t, os.Remove(filepath.Join(over(t, root, "o").Dir, "plan.yaml")))
	if v, err := session.NewFinder(root).OfTask("o"); err != nil || v.Damage != "" {
		t.Errorf("%v, %q", err, v.Damage)
	}
}

// The record directories must not be symbolic links, which would redirect writes.
func TestPlacesAreNoLinks(t *testing.T) {
	for _, name := range []string{".coven", ".coven/sessions", ".coven/run", ".coven/run/inbox"} {
		root, elsewhere := t.TempDir(), t.TempDir()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.Symlink(elsewhere, filepath.Join(root, name)))
		link := (*regularfile.LinkError)(nil)
		_, asked := session.Ask(root, "s", session.Request{Kind: session.KindCancel})
		_, created := session.Create(root, "t", "x", day)
		_, listed := session.List(root)
		if inbox := strings.Contains(name, "run"); inbox != errors.As(asked, &link) && name != ".coven" || !inbox && (!errors.As(created, &link) || !errors.As(listed, &link)) {
			t.Errorf("%s: %v, %v, %v", name, asked, created, listed)
		}
		if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
			t.Errorf("%s: coven wrote there: %v, %v", name, left, err)
		}
	}
}

// Writes to a session stay within its files, which are accessible only to their owner.
func TestWritesStayInside(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	defer s.Close() //nolint:errcheck // the test is over
	log, _, err := s.OpenLog("a#1")
	must(t, err)
	must(t, log.Close())
	must(t, s.Say(session.Part{Type: "text", Text: "x"}))
	must(t, filepath.WalkDir(filepath.Join(root, session.Dir), func(file string, e os.DirEntry, err error) error {
		must(t, err)
		info, err := e.Info()
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %s", file, info.Mode())
		}
		return nil
	}))
	outside := filepath.Join(t.TempDir(), "victim")
	for _, name := range []string{"messages.jsonl", "logs/b#1.log"} {
		for _, put := range []func(string) error{
			func(file string) error { return os.Symlink(outside, file) },
			func(file string) error { return syscall.Mkfifo(file, 0o600) },
		} {
			file := filepath.Join(s.Dir, name)
			_ = os.Remove(file) // it may not exist
			must(t, put(file))
			if name == "messages.jsonl" {
				err = s.Say(session.Part{Type: "text"})
			} else {
				_, _, err = s.OpenLog("b#1")
			}
			if err == nil {
				t.Errorf("%s was written", name)
			}
			if _, err := session.ReadLog(s.Dir, "b#1"); name != "messages.jsonl" && err == nil {
				t.Errorf("%s was read", name)
			}
		}
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("something was written outside")
	}
}

// Requests in an inbox behind a symbolic link are ignored.
func TestInboxBehindLink(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	s := begin(t, root)
	defer s.Close() //nolint:errcheck // the test is over
	must(t, os.MkdirAll(filepath.Join(elsewhere, "inbox", s.ID), 0o755))
	must(t, os.WriteFile(filepath.Join(elsewhere, "inbox", s.ID, "1.json"), []byte(`{"kind":"cancel"}`), 0o644))
	must(t, os.Symlink(elsewhere, filepath.Join(root, ".coven", "run")))
	if asked, err := s.Requests(); len(asked) > 0 || !errors.As(err, new(*regularfile.LinkError)) {
		t.Errorf("%v, %v", asked, err)
	}
}

// Files that are not requests, such as pipes, are removed and do not block.
func TestInboxHoldsOtherThings(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	defer s.Close() //nolint:errcheck // the test is over
	_, err := session.Ask(root, s.ID, session.Request{Kind: session.KindCancel})
	must(t, err)
	inbox := filepath.Join(root, ".coven", "run", "inbox", s.ID)
	must(t, syscall.Mkfifo(filepath.Join(inbox, "0.json"), 0o644))
	must(t, os.Symlink("/dev/zero", filepath.Join(inbox, "1.json")))
	if asked, err := s.Requests(); err != nil || len(asked) != 1 {
		t.Errorf("%v, %v", asked, err)
	}
}

// A log of any size can be read without filling the memory.
func TestHugeTranscript(t *testing.T) {
	root := t.TempDir()
	s := begin(t, root)
	defer s.Close() //nolint:errcheck // the test is over
	log, _, err := s.OpenLog("a#1")
	must(t, err)
	_, err = log.Write([]byte("one\ntwo\n"))
	must(t, err)
	must(t, log.Close())
	read := func() ([]byte, error) {
		in, err := s.ReadLog("a#1", 4)
		must(t, err)
		defer in.Close() //nolint:errcheck // read only
		return bufio.NewReader(in).ReadBytes('x')
	}
	if text, err := read(); string(text) != "two\n" || !errors.Is(err, io.EOF) {
		t.Errorf("%q, %v", text, err)
	}
	must(t, os.Truncate(session.LogFile(s.Dir, "a#1"), 10<<30))
	if text, err := read(); err == nil || errors.Is(err, io.EOF) || len(text) > 200<<20 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
