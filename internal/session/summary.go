package session

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Summary is the part of a session's view that lists and searches need. It is cheap even with
// thousands of sessions, because of the index.
type Summary struct {
	ID       string
	Task     string
	Grimoire string
	Status   event.Status
	Started  time.Time
	Ended    time.Time
	Cost     float64 // in US dollars

	root   string
	view   *View   // nil until it is needed
	finder *Finder // reads the view; nil for Load
}

// SummaryOf returns the summary of a session.
func SummaryOf(root string, v View) Summary {
	return Summary{root: root, ID: v.ID, Task: v.Task, Grimoire: v.Info.Grimoire, Status: v.Status, Started: v.Started, Ended: v.Ended, Cost: v.Used.USD, view: &v}
}

// Dir returns the directory of the session.
func (s Summary) Dir() string { return filepath.Join(s.root, Dir, s.ID) }

// Live is like View.Live.
func (s Summary) Live() bool { return View{State: State{Status: s.Status}}.Live() }

// IsOver reports whether the session has ended and needs no attention.
func (s Summary) IsOver() bool { return !s.Ended.IsZero() && s.Status != Blocked }

// View returns the view of the session. The errors are those of Load.
func (s Summary) View() (View, error) {
	if s.view != nil {
		return *s.view, nil
	}
	if s.finder != nil {
		return s.finder.load(s.Dir())
	}
	return Load(s.Dir())
}

// Views returns the views of sessions. It omits sessions that cannot be read and reports them in
// the error (see DamagedIn).
func Views(all []Summary) ([]View, error) {
	views := []View{} // not nil, for JSON
	var broken error
	for _, s := range all {
		v, err := s.View()
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && v.Started.IsZero():
			continue // it was removed concurrently
		case err != nil:
			broken = errors.Join(broken, err)
			continue
		}
		views = append(views, v)
	}
	return views, broken
}

// Summaries returns the sessions of the project, newest first. It omits sessions that
// cannot be read and reports them in the error (see DamagedIn).
func (f *Finder) Summaries() ([]Summary, error) { return f.summaries(true) }

// Known is like Summaries, but believes the index, which is fast. It does not notice changes that other programs make to ended sessions.
func (f *Finder) Known() ([]Summary, error) { return f.summaries(false) }

func (f *Finder) summaries(check bool) ([]Summary, error) {
	entries, lines, err := f.list(check)
	if err != nil {
		return nil, err
	}
	all := make([]Summary, 0, len(entries))
	var broken error
	added, follows := 0, f.follows()
	for i, e := range entries {
		if s, ok := summaryIn(lines[i], f.root); ok {
			if follows {
				s.finder = f
			}
			all = append(all, s)
			continue
		}
		s, line, err := f.summarize(e)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && s.Started.IsZero():
			continue // not a session, or it never started
		case err != nil:
			broken = errors.Join(broken, err)
			continue
		case line != "":
			lines[i], added = line, added+1
		}
		all = append(all, s)
	}
	f.updateIndex(entries, lines, added)
	slices.SortFunc(all, func(a, b Summary) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.ID, b.ID))
	})
	return all, broken
}

// summarize reads a session. It also returns its index line, or "" if it cannot be indexed.
func (f *Finder) summarize(e os.DirEntry) (s Summary, line string, err error) {
	dir := filepath.Join(f.root, Dir, e.Name())
	before, isFile := f.stamp(e.Name())
	v, err := f.load(dir)
	if err != nil {
		return Summary{}, "", err
	}
	s = SummaryOf(f.root, v)
	if !isFile || !e.IsDir() || !before.settledAt(f.now()) {
		return s, "", nil
	}
	first, err := event.First(filepath.Join(dir, eventsFile))
	if after, ok := f.stamp(e.Name()); err != nil || first.Task != s.Task || !ok || after != before {
		return s, "", nil //nolint:nilerr // the journal is changing; the view is still consistent
	}
	return s, s.line(before), nil
}

func (f *Finder) stamp(id string) (fileStamp, bool) {
	parent, err := os.Open(filepath.Join(f.root, Dir))
	if err != nil {
		return fileStamp{}, false
	}
	defer parent.Close() //nolint:errcheck // read only
	return stampOf(int(parent.Fd()), id)
}

// list returns the session directories, and for each one its index line or "". With check, the lines are valid.
func (f *Finder) list(check bool) ([]os.DirEntry, []string, error) {
	lines := f.known()
	if check {
		lines = lines.valid(f.root)
	}
	entries, err := f.entries()
	return entries, lines.of(entries), err
}

// known returns the index. It rereads the file if it was replaced.
func (f *Finder) known() index {
	f.mu.Lock()
	defer f.mu.Unlock()
	if file, err := os.Lstat(filepath.Join(f.root, runDir, indexFile)); err != nil {
		f.index, f.indexFile = nil, nil
	} else if f.indexFile == nil || !sameFile(f.indexFile, file) {
		f.index, f.indexFile = readIndex(f.root), file
	}
	return f.index
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// updateIndex writes the index if enough lines were added or are superfluous.
func (f *Finder) updateIndex(entries []os.DirEntry, lines []string, added int) {
	if added < indexBatch {
		f.mu.Lock()
		known := len(f.index)
		f.mu.Unlock()
		if known <= 2*len(entries)+indexBatch {
			return
		}
	}
	next := index(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return line == "" }))
	_ = next.write(f.root, f.now()) // the index is a cache, and the directory may be read-only
}

// LiveStatuses returns the statuses of the sessions that are not over, by ID.
func LiveStatuses(all []Summary) map[string]event.Status {
	live := map[string]event.Status{}
	for _, s := range all {
		if s.Live() {
			live[s.ID] = s.Status
		}
	}
	return live
}
