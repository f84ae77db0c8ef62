package session

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session/away"
)

// later is a clock for which every change is old enough to be indexed.
func later() time.Time { return time.Now().Add(time.Hour) }

// never is a clock for which no change is old enough.
func never() time.Time { return time.Unix(0, 0) }

// finderAt returns a Finder without cached data.
func finderAt(root string, now func() time.Time) *Finder {
	f := NewFinder(root)
	f.now = now
	return f
}

// line returns an event line of a journal.
func line(seq int, what event.Type, task, data string) string {
	return fmt.Sprintf(`{"v":1,"seq":%d,"time":"2026-01-02T03:%02d:05Z","type":%q,"session":"x","task":%q,"data":%s}`+"\n", seq, seq%60, what, task, data)
}

// makeSession writes the journal of a session directly.
func makeSession(t testing.TB, root, id, task string, started time.Time, events ...event.Type) {
	t.Helper()
	text := strings.Replace(line(1, event.SessionStarted, task, `{"query":"Q"}`), "2026-01-02T03:01:05Z", started.Format(time.RFC3339Nano), 1)
	for i, what := range events {
		text += line(i+2, what, task, `{"reason":"review","detail":"d"}`)
	}
	dir := filepath.Join(root, Dir, id)
	ok(t, os.MkdirAll(dir, 0o700))
	ok(t, os.WriteFile(filepath.Join(dir, planFile), []byte("grimoire: x\n"), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, eventsFile), []byte(text), 0o600))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// indexedProject creates n ended sessions and their index.
func indexedProject(t testing.TB, root string, n int) string {
	t.Helper()
	ok(t, os.MkdirAll(filepath.Join(root, runDir), 0o700))
	for i := range n {
		makeSession(t, root, fmt.Sprintf("s-%03d", i), fmt.Sprintf("t-%d", i%7), time.Unix(int64(i/2), 0).UTC(), event.SessionCompleted)
	}
	_, err := finderAt(root, later).Summaries()
	ok(t, err)
	if got := len(readIndex(root)); got < n {
		t.Fatalf("the index has %d sessions, want %d", got, n)
	}
	return filepath.Join(root, runDir, indexFile)
}

// answers are the results of a Finder for a project.
type answers struct {
	views  []View
	brief  []Summary
	broken string
	found
}

// found are the results that believe the index.
type found struct {
	known  []Summary
	tasks  []string
	ofTask map[string]string
}

// String formats the answers for error messages.
func (a answers) String() string {
	var text strings.Builder
	for _, s := range a.brief {
		fmt.Fprintf(&text, "%s of %s %s %s\n", s.ID, s.Task, s.Status, s.Started)
	}
	return fmt.Sprint(&text, a.broken, a.known, a.tasks, a.ofTask)
}

func answersOf(t testing.TB, f *Finder) answers {
	t.Helper()
	all, err := f.Summaries()
	a := answers{broken: fmt.Sprint(err), found: found{ofTask: map[string]string{}}}
	a.views, err = Views(all)
	a.broken += fmt.Sprint(err)
	known, _ := f.Known()
	for _, to := range []struct {
		all  []Summary
		kept *[]Summary
	}{{all, &a.brief}, {known, &a.known}} {
		for _, s := range to.all {
			s.view = nil
			*to.kept = append(*to.kept, s)
		}
	}
	a.tasks, err = f.Tasks()
	ok(t, err)
	for i := range 8 {
		task := fmt.Sprintf("t-%d", i)
		v, err := f.OfTask(task)
		a.ofTask[task] = fmt.Sprint(v.ID, v.Status, err)
	}
	return a
}

// The index does not change any answer, after any history. After a change of an ended session by hand, those that believe the index are undefined.
func TestIndexChangesNoAnswer(t *testing.T) {
	if racing {
		t.Skip("nothing in it happens at once")
	}
	top := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		root := filepath.Join(top, fmt.Sprint(runs))
		file := indexedProject(t, root, 2*indexBatch)
		old, err := os.ReadFile(file)
		ok(t, err)
		long := finderAt(root, later) // in a long-running process
		sessions := filepath.Join(root, Dir)
		n := 100
		one := func() string {
			ids, err := IDs(root)
			ok(t, err)
			return filepath.Join(sessions, rapid.SampledFrom(ids).Draw(rt, "session"))
		}
		appendTo := func(dir, text string) {
			f, err := os.OpenFile(filepath.Join(dir, eventsFile), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return // it has no journal
			}
			_, err = f.WriteString(text)
			ok(t, errors.Join(err, f.Close()))
		}
		acts := map[string]func(){
			"add": func() {
				what := rapid.SampledFrom([]event.Type{event.SessionCompleted, event.SessionFailed, event.SessionCancelled, event.SessionBlocked, event.SessionWaiting, event.SessionStopped, event.Warning}).Draw(rt, "state")
				n++
				makeSession(t, root, fmt.Sprintf("s-%d", n), fmt.Sprintf("t-%d", n%8), time.Unix(int64(n%40), 0).UTC(), what)
			},
			"continue": func() {
				dir := one()
				events, err := Events(dir)
				if err != nil || len(events) == 0 {
					return
				}
				appendTo(dir, line(len(events)+1, event.SessionResumed, events[0].Task, "{}"))
			},
			"change task": func() {
				dir := one()
				if events, err := Events(dir); err == nil && len(events) > 0 {
					makeSession(t, root, filepath.Base(dir), "t-7-"+events[0].Task, time.Unix(1, 0).UTC(), event.SessionFailed)
				}
			},
			"damage":  func() { appendTo(one(), "what\n") },
			"tear":    func() { appendTo(one(), `{"v":1`) },
			"empty":   func() { ok(t, os.WriteFile(filepath.Join(one(), eventsFile), nil, 0o600)) },
			"remove":  func() { ok(t, os.RemoveAll(one())) },
			"rename":  func() { n++; ok(t, os.Rename(one(), filepath.Join(sessions, fmt.Sprintf("s-%d", n)))) },
			"replace": func() { dir := one(); ok(t, os.RemoveAll(dir)); ok(t, os.Rename(one(), dir)) },
			"link": func() {
				dir := one()
				n++
				aside := filepath.Join(root, fmt.Sprint("aside-", n))
				ok(t, errors.Join(os.Rename(dir, aside), os.Symlink(aside, dir)))
			},
			"link journal": func() {
				dir := one()
				n++
				aside := filepath.Join(root, fmt.Sprint("journal-", n))
				if os.Rename(filepath.Join(dir, eventsFile), aside) == nil {
					ok(t, os.Symlink(aside, filepath.Join(dir, eventsFile)))
				}
			},
			"no index":  func() { ok(t, os.RemoveAll(file)) },
			"old index": func() { ok(t, os.WriteFile(file, old, 0o600)) },
			"cut index": func() {
				text, err := os.ReadFile(file)
				if err == nil {
					ok(t, os.WriteFile(file, text[:rapid.IntRange(0, len(text)).Draw(rt, "cut")], 0o600))
				}
			},
			"flip index": func() {
				text, err := os.ReadFile(file)
				if err == nil && len(text) > 0 {
					text[rapid.IntRange(0, len(text)-1).Draw(rt, "at")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
					ok(t, os.WriteFile(file, text, 0o600))
				}
			},
			"foreign index": func() { // for a file of another project
				text := ""
				ids, _ := IDs(root)
				for i, id := range ids {
					text += fmt.Sprintf("%016x\t%s\tt-%d\tcompleted\t1\t2\t0\n", i, id, (i+1)%8)
				}
				ok(t, os.WriteFile(file, []byte(indexHeader(text)+"\n"+text), 0o600))
			},
		}
		names, byHand := slices.Sorted(maps.Keys(acts)), false
		for range rapid.IntRange(1, 5).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "act")
			acts[name]()
			byHand = byHand || slices.Contains([]string{"continue", "change task", "damage", "tear", "empty", "replace", "link journal", "old index", "foreign index"}, name)
			hidden := file + ".hidden"
			moved := os.Rename(file, hidden)
			want := answersOf(t, finderAt(root, never))
			if moved == nil {
				ok(t, os.Rename(hidden, file))
			}
			for who, f := range map[string]*Finder{"new": finderAt(root, later), "long": long, "again": finderAt(root, later)} {
				got := answersOf(t, f)
				if byHand {
					got.found = want.found
				}
				if !reflect.DeepEqual(got, want) {
					rt.Fatalf("after %s, a %s process says\n%s\nwant\n%s", name, who, got, want)
				}
			}
		}
		ok(t, os.RemoveAll(root))
	})
}

// The index is used instead of the sessions.
func TestIndexIsUsed(t *testing.T) {
	root := t.TempDir()
	file := indexedProject(t, root, 2*indexBatch)
	text, err := os.ReadFile(file)
	ok(t, err)
	_, lines, _ := strings.Cut(string(text), "\n")
	lines = strings.ReplaceAll(lines, "\tt-3\t", "\tt-other\t")
	ok(t, os.WriteFile(file, []byte(indexHeader(lines)+"\n"+lines), 0o600))
	tasks, err := finderAt(root, later).Tasks()
	ok(t, err)
	if !slices.Contains(tasks, "t-other") || slices.Contains(tasks, "t-3") {
		t.Errorf("tasks: %v", tasks)
	}
}

// The index forgets a session whose record is created again or replaced.
func TestIndexForgets(t *testing.T) {
	now := func() time.Time { return time.Date(2031, 4, 2, 0, 0, 0, 0, time.UTC) }
	for name, create := range map[string]func(root, id string) error{
		"created": func(root, _ string) error {
			s, err := Create(root, "t-new", "q", now)
			ok(t, err)
			return s.Close()
		},
		"imported": func(root, id string) error {
			other := t.TempDir()
			makeSession(t, other, id, "t-new", time.Unix(99, 0).UTC(), event.SessionWaiting)
			record, err := os.ReadFile(filepath.Join(other, Dir, id, eventsFile))
			ok(t, err)
			record = bytes.ReplaceAll(record, []byte(`"session":"x"`), []byte(`"session":"`+id+`"`))
			return Import(root, id, "t-new", map[string][]byte{eventsFile: record, planFile: []byte("grimoire: x\n")}, now)
		},
		"mirrored": func(root, id string) error {
			makeSession(t, root, id, "t-old", time.Unix(98, 0).UTC(), event.SessionFailed)
			return Mirror(root, id, now, func() (*away.State, []byte, error) {
				events, err := os.ReadFile(filepath.Join(root, Dir, id, eventsFile))
				return &away.State{Tip: strings.Repeat("1", 40)}, events, err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			id := "2031-04-02-q"
			makeSession(t, root, id, "t-old", time.Unix(98, 0).UTC(), event.SessionCompleted)
			file := indexedProject(t, root, 2*indexBatch)
			text, err := os.ReadFile(file)
			ok(t, err)
			if !strings.Contains(string(text), id) {
				t.Fatal("it is not indexed")
			}
			ok(t, os.RemoveAll(filepath.Join(root, Dir, id)))
			ok(t, create(root, id))
			if lines := readIndex(root); len(lines) != 2*indexBatch {
				t.Errorf("the index has %d lines", len(lines))
			}
		})
	}
}

// A session that has just changed is not indexed, because its next change could have the same
// time.
func TestIndexWaitsUntilSettled(t *testing.T) {
	root := t.TempDir()
	indexedProject(t, root, 2*indexBatch)
	for i := range 2 * indexBatch {
		makeSession(t, root, fmt.Sprintf("new-%d", i), "t-9", time.Unix(9, 0).UTC(), event.SessionCompleted)
	}
	_, err := finderAt(root, time.Now).Summaries()
	ok(t, err)
	for _, line := range readIndex(root) {
		if strings.HasPrefix(idOf(line), "new-") {
			t.Fatalf("%s is in the index", line)
		}
	}
}

// OfTask creates a missing index.
func TestIndexMadeBySearch(t *testing.T) {
	root := t.TempDir()
	file := indexedProject(t, root, 2*indexBatch)
	ok(t, os.Remove(file))
	_, err := finderAt(root, later).OfTask("t-1")
	ok(t, err)
	if got := len(readIndex(root)); got != 2*indexBatch {
		t.Errorf("the index has %d sessions", got)
	}
}

// Any file in place of the index does not affect answers, is replaced, and leads to no other changes.
func TestIndexPlanted(t *testing.T) {
	for name, plant := range map[string]func(t *testing.T, path, outside string){
		"link":          func(t *testing.T, path, outside string) { ok(t, os.Symlink(outside, path)) },
		"dangling link": func(t *testing.T, path, outside string) { ok(t, os.Symlink(outside+"-none", path)) },
		"FIFO":          func(t *testing.T, path, _ string) { ok(t, syscall.Mkfifo(path, 0o600)) },
		"huge": func(t *testing.T, path, _ string) {
			ok(t, os.WriteFile(path, nil, 0o600))
			ok(t, os.Truncate(path, maxIndex+1))
		},
		"garbage": func(t *testing.T, path, _ string) { ok(t, os.WriteFile(path, []byte("\x00\n\t\n"), 0o600)) },
		"other version": func(t *testing.T, path, _ string) {
			ok(t, os.WriteFile(path, []byte("coven session index 2 0\n"), 0o600))
		},
		"empty":     func(t *testing.T, path, _ string) { ok(t, os.WriteFile(path, nil, 0o600)) },
		"directory": func(t *testing.T, path, _ string) { ok(t, os.MkdirAll(filepath.Join(path, "mine"), 0o700)) },
	} {
		for _, suffix := range []string{"", ".new"} {
			t.Run(name+suffix, func(t *testing.T) {
				root := t.TempDir()
				file := indexedProject(t, root, 2*indexBatch)
				want := answersOf(t, finderAt(root, never))
				outside := filepath.Join(t.TempDir(), "outside")
				ok(t, os.WriteFile(outside, []byte("mine"), 0o600))
				ok(t, os.Remove(file))
				plant(t, file+suffix, outside)
				if got := answersOf(t, finderAt(root, later)); !reflect.DeepEqual(got, want) {
					t.Errorf("got %s\nwant %s", got, want)
				}
				rebuilt := len(readIndex(root)) == 2*indexBatch
				if kept := name == "directory"; rebuilt == kept {
					t.Errorf("rebuilt: %v", rebuilt)
				}
				if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
					t.Errorf("%q, %v", text, err)
				}
				if name == "directory" && !exists(filepath.Join(file+suffix, "mine")) {
					t.Error("the directory is gone")
				}
			})
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// .coven/run may be missing or not be a directory.
func TestIndexWithoutDirectory(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, run string){
		"missing": func(*testing.T, string) {},
		"file":    func(t *testing.T, run string) { ok(t, os.WriteFile(run, nil, 0o600)) },
		"link":    func(t *testing.T, run string) { ok(t, os.Symlink(t.TempDir(), run)) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			indexedProject(t, root, 2*indexBatch)
			run := filepath.Join(root, runDir)
			ok(t, os.RemoveAll(run))
			want := answersOf(t, finderAt(root, never))
			do(t, run)
			if got := answersOf(t, finderAt(root, later)); !reflect.DeepEqual(got, want) {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if info, err := os.Stat(run); name == "link" && err == nil {
				if inside, err := os.ReadDir(run); err != nil || len(inside) > 0 {
					t.Errorf("%v has %v, %v", info.Name(), inside, err)
				}
			}
		})
	}
}

// Concurrent writers of the index do not disturb each other.
func TestIndexTogether(t *testing.T) {
	root := t.TempDir()
	file := indexedProject(t, root, 2*indexBatch)
	want := answersOf(t, finderAt(root, never))
	var all sync.WaitGroup
	shared := finderAt(root, later)
	for range 4 {
		all.Go(func() {
			for range 10 {
				if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
				for _, f := range []*Finder{finderAt(root, later), shared} {
					if got := answersOf(t, f); !reflect.DeepEqual(got, want) {
						t.Errorf("got %s\nwant %s", got, want)
					}
				}
			}
		})
	}
	all.Wait()
	if _, err := finderAt(root, later).Summaries(); err != nil || len(readIndex(root)) != 2*indexBatch {
		t.Errorf("%d sessions, %v", len(readIndex(root)), err)
	}
}

// A Finder lists the directories again when they have changed, and not otherwise.
func TestFinderLists(t *testing.T) {
	root := t.TempDir()
	f := NewFinder(root)
	list := func() []os.DirEntry {
		t.Helper()
		entries, err := f.entries()
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	if found := list(); len(found) != 0 {
		t.Fatal(found)
	}
	for n := range 300 {
		if err := os.MkdirAll(filepath.Join(root, Dir, fmt.Sprint("s", n)), 0o755); err != nil {
			t.Fatal(err)
		}
		if found := list(); len(found) != n+1 {
			t.Fatalf("%d of %d sessions", len(found), n+1)
		}
	}
	if err := os.Chtimes(filepath.Join(root, Dir), time.Time{}, time.Now().Add(-time.Hour-1)); err != nil {
		t.Fatal(err)
	}
	if one, two := list(), list(); &one[0] != &two[0] {
		t.Error("it listed them again without a change")
	}
	if err := os.Remove(filepath.Join(root, Dir, "s7")); err != nil {
		t.Fatal(err)
	}
	if found := list(); len(found) != 299 {
		t.Errorf("%d sessions", len(found))
	}
}
