package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/regularfile"
)

// Load computes the view of the session in dir. The error is a *DamagedError when the
// record is there and cannot be read.
func Load(dir string) (View, error) {
	v, err := load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hasStarted(dir), err == nil && v.Started.IsZero() && hasStarted(dir):
		return View{}, damaged(dir, errNoEvents)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return View{}, damaged(dir, err)
	}
	return v, err
}

func load(dir string) (View, error) {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return View{}, regularfile.Directory(filepath.Dir(dir), filepath.Base(dir))
	}
	file := filepath.Join(dir, eventsFile)
	size := length(file)
	events, err := event.Read(file)
	if err != nil {
		return View{}, err
	}
	v, err := Fold(events)
	if err != nil {
		return View{}, fmt.Errorf("session %s: %w", filepath.Base(dir), err)
	}
	v.ID, v.Dir = filepath.Base(dir), dir
	if v.Live() && !v.Started.IsZero() {
		v.Damage = planDamage(dir)
	}
	if v.Status == Running && !held(dir) {
		// It may have ended, and recorded that, since its events were read.
		if length(file) != size {
			return load(dir)
		}
		v.Status, v.Detail, v.Crashed, v.Parked = Interrupted, "coven ended while the session ran", true, nil
	}
	return v, nil
}

// Events are the events of the session in dir.
func Events(dir string) ([]event.Event, error) { return event.Read(filepath.Join(dir, eventsFile)) }

// entriesOf lists the directories of a project's sessions. A link in the place of the
// parent is refused with a *plain.LinkError.
func entriesOf(root string) ([]os.DirEntry, error) {
	if err := regularfile.Directory(root, Dir); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(root, Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !e.IsDir() && e.Type()&fs.ModeSymlink == 0 // a file beside the sessions belongs to none
	}), nil
}

// length is how long a file is, in bytes; 0 when that cannot be found out.
func length(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// List returns the sessions of a project, the newest first. A session that
// cannot be read is left out and named in the error (see DamagedIn); the others are
// returned beside it.
func List(root string) ([]View, error) {
	entries, err := entriesOf(root)
	if err != nil {
		return nil, err
	}
	var views []View
	var broken error
	for _, e := range entries {
		v, err := Load(filepath.Join(root, Dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && v.Started.IsZero():
			continue // not a session, or one that never started
		case err != nil:
			broken = errors.Join(broken, err)
			continue
		}
		views = append(views, v)
	}
	slices.SortStableFunc(views, func(a, b View) int { return b.Started.Compare(a.Started) })
	return views, broken
}

// OfTask returns the newest session of a task, or ErrNone. Of the sessions of
// other tasks it reads no more than the beginning.
func OfTask(root, task string) (View, error) { return NewFinder(root).OfTask(task) }

// Finder finds the sessions of tasks, again and again: of those that it has seen
// it knows whose they are. It may be used by several goroutines.
type Finder struct {
	root string

	mu    sync.Mutex
	owner map[string]owner // by id of the session
}

// owner is the task of a session's directory, as long as the directory is the
// same.
type owner struct {
	dir  fs.FileInfo
	task string
}

// NewFinder returns a Finder for the sessions of a project.
func NewFinder(root string) *Finder { return &Finder{root: root, owner: map[string]owner{}} }

// OfTask is like the function of that name. The error is a *DamagedError when the
// newest session of the task is damaged. Damaged sessions of other tasks, and those
// whose task nobody knows, do not matter: the claim of a task that one of those works
// on says so.
func (f *Finder) OfTask(task string) (View, error) {
	entries, err := entriesOf(f.root)
	if err != nil {
		return View{}, err
	}
	newest, broken := View{}, (*DamagedError)(nil)
	for _, e := range entries {
		of, err := f.taskOf(e)
		if errors.Is(err, fs.ErrNotExist) || err == nil && of != task {
			continue
		}
		v := View{}
		if err == nil {
			v, err = Load(filepath.Join(f.root, Dir, e.Name()))
		}
		found := (*DamagedError)(nil)
		switch {
		case errors.As(err, &found):
			if found.Task == task && (broken == nil || found.Started.After(broken.Started)) {
				broken = found
			}
		case err != nil:
			continue // it was removed meanwhile
		case v.Started.After(newest.Started):
			newest = v
		}
	}
	if broken != nil && !newest.Started.After(broken.Started) {
		return View{}, broken
	}
	if newest.Started.IsZero() {
		return View{}, fmt.Errorf("task %s: %w", task, ErrNone)
	}
	return newest, nil
}

// taskOf is the task of a session: its first event says it, and that one never
// changes. A directory that was changed since is read again: it may be another.
func (f *Finder) taskOf(e fs.DirEntry) (string, error) {
	dir, err := e.Info()
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	known, ok := f.owner[e.Name()]
	f.mu.Unlock()
	if ok && os.SameFile(known.dir, dir) && known.dir.ModTime().Equal(dir.ModTime()) {
		return known.task, nil
	}
	at := filepath.Join(f.root, Dir, e.Name())
	if !dir.IsDir() {
		_, err := Load(at)
		return "", err
	}
	first, err := event.First(filepath.Join(at, eventsFile))
	switch {
	case err == nil && first.Seq > 0:
		f.mu.Lock()
		f.owner[e.Name()] = owner{dir, first.Task}
		f.mu.Unlock()
		return first.Task, nil
	case (err == nil || errors.Is(err, fs.ErrNotExist)) && !hasStarted(at):
		return "", fs.ErrNotExist // it never began
	case err == nil, errors.Is(err, fs.ErrNotExist):
		err = errNoEvents
	}
	return "", damaged(at, err)
}

// IsOver reports whether a session has ended for good and no process is
// clearing up after it.
func IsOver(root, id string) bool {
	dir := filepath.Join(root, Dir, id)
	v, err := Load(dir)
	return err == nil && !held(dir) && (v.Status == Completed || v.Status == Failed || v.Status == Cancelled)
}

// Busy reports whether somebody writes the session in dir.
func Busy(dir string) bool { return held(dir) }

// Exists reports whether the project has a session of this id.
func Exists(root, id string) bool {
	_, err := os.Stat(filepath.Join(root, Dir, id))
	return err == nil
}

// NeverBegan reports whether a session has no first event and no process is about to
// write one.
func NeverBegan(root, id string) bool {
	dir := filepath.Join(root, Dir, id)
	if held(dir) {
		return false
	}
	v, err := Load(dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && v.Started.IsZero()
}
