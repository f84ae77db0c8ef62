package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session/away"
)

// Load computes the view of the session in dir. The error is a *DamagedError if the
// record exists and cannot be read.
func Load(dir string) (View, error) { return loadWith(dir, readJournal) }

func loadWith(dir string, read func(file string) (View, error)) (View, error) {
	v, err := load(dir, read)
	if hasNoEvents(v, err) && hasStarted(dir) {
		// The views may have been written after the events were read. Events are written before views.
		if v, err = load(dir, read); hasNoEvents(v, err) {
			return View{}, damaged(dir, errNoEvents)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return View{}, damaged(dir, err)
	}
	return v, err
}

// hasNoEvents reports whether the results of load mean a session without events.
func hasNoEvents(v View, err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err == nil && v.Started.IsZero()
}

func load(dir string, read func(file string) (View, error)) (View, error) {
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		return View{}, regularfile.Directory(filepath.Dir(dir), filepath.Base(dir))
	}
	file := filepath.Join(dir, eventsFile)
	size := length(file)
	v, err := read(file)
	if err != nil {
		return View{}, err
	}
	v.ID, v.Dir = filepath.Base(dir), dir
	if v.Live() && !v.Started.IsZero() {
		v.Damage = planDamage(dir)
	}
	if v.Info.Remote != "" && v.Unfinished() {
		v.Away = away.Read(dir)
	}
	if v.Status == Running && !v.Elsewhere() && !held(dir) {
		// The session may have recorded its end after its events were read.
		if length(file) != size {
			return load(dir, read)
		}
		v.Status, v.Detail, v.Crashed, v.Parked = Interrupted, "coven ended while the session ran", true, nil
	}
	if v.Away != nil {
		v.Detail = v.Away.Text(v.Detail)
	}
	if v.Away != nil && !v.Elsewhere() {
		v.Next = v.Away.Next(v.Task)
	}
	return v, nil
}

// Events returns the events of the session in dir, in order: those of the given types, or all.
func Events(dir string, types ...event.Type) ([]event.Event, error) {
	return event.Read(filepath.Join(dir, eventsFile), types...)
}

// entriesOf lists the directories of a project's sessions. If their parent directory is a
// symbolic link, the error is a *regularfile.LinkError.
func entriesOf(root string) ([]os.DirEntry, error) {
	if err := regularfile.Directory(root, Dir); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(root, Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	shared := isShared(root)
	return slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !e.IsDir() && e.Type()&fs.ModeSymlink == 0 || // keep only directories, and links to report them
			shared && isForeign(e)
	}), nil
}

// isShared reports whether other users can have sessions in the project: whether it has a repository with
// core.sharedRepository, see ShareState of package worktree.
func isShared(root string) bool {
	info, err := os.Stat(filepath.Join(root, Dir))
	return err == nil && info.Mode()&fs.ModeSetgid != 0 && info.Mode().Perm()&0o020 != 0
}

// isForeign reports whether a session belongs to another user, and is therefore private.
func isForeign(e os.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) != os.Geteuid()
}

// Foreign returns the sessions of other users, whose records are private.
func Foreign(root string) (ids []string) {
	if !isShared(root) {
		return nil
	}
	entries, _ := os.ReadDir(filepath.Join(root, Dir)) // without them there is none
	for _, e := range entries {
		if e.IsDir() && isForeign(e) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// length returns the length of a file in bytes, or 0 if it is unknown.
func length(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// List returns the sessions of a project, newest first. It omits sessions that
// cannot be read and reports them in the error (see DamagedIn).
func List(root string) ([]View, error) {
	all, broken := NewFinder(root).Summaries()
	views, alsoBroken := Views(all)
	return views, errors.Join(broken, alsoBroken)
}

// Finder finds the sessions of tasks. It caches the tasks of known sessions. It is
// safe for concurrent use.
type Finder struct {
	root string
	now  func() time.Time

	mu        sync.Mutex
	owner     map[string]owner // by session ID
	index     index
	indexFile fs.FileInfo // file that index was read from; nil if there was none
	completed bool        // OfTask has completed the index
	listed    listing

	following sync.Mutex
	followed  map[string]*followed // by journal; nil if sessions are read anew
}

// listing is a cached list of session directories. It is valid while their parent directory does not change.
type listing struct {
	parent  fs.FileInfo // nil if nothing is cached
	entries []os.DirEntry
}

// tick is more than the interval at which a kernel updates the time that it gives to changed files.
const tick = 20 * time.Millisecond

// entries is entriesOf with a cache. The caller must not change the result.
func (f *Finder) entries() ([]os.DirEntry, error) {
	now := time.Now()
	parent, err := os.Lstat(filepath.Join(f.root, Dir))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.listed.parent != nil && sameFile(f.listed.parent, parent) {
		return f.listed.entries, nil
	}
	f.listed = listing{}
	entries, listErr := entriesOf(f.root)
	if err == nil && listErr == nil && now.Sub(parent.ModTime()) >= tick && parent.ModTime().Nanosecond() != 0 { // the file system keeps more than whole seconds
		f.listed = listing{parent, entries}
	}
	return entries, listErr
}

// owner is the cached task of a session. It is valid while the journal has the same stamp.
type owner struct {
	stamp fileStamp
	task  string
}

// NewFinder returns a Finder for the sessions of a project.
func NewFinder(root string) *Finder {
	return &Finder{root: root, now: time.Now, owner: map[string]owner{}}
}

// OfTask returns the newest session of a task, or ErrNone. It reads only the beginning of sessions of other tasks,
// and believes the index like Known. The error is a *DamagedError if the newest session of the task is damaged. Damaged sessions of other or unknown tasks are
// ignored; if such a session works on the task, the task's claim shows that.
func (f *Finder) OfTask(task string) (View, error) {
	entries, taskOf, err := f.tasks()
	if err != nil {
		return View{}, err
	}
	newest, broken := View{}, (*DamagedError)(nil)
	for i, e := range entries {
		of, err := taskOf(i)
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
			continue // it was removed concurrently
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

// Tasks returns the tasks that have a readable session, sorted.
func (f *Finder) Tasks() ([]string, error) {
	entries, taskOf, err := f.tasks()
	if err != nil {
		return nil, err
	}
	var tasks []string
	for i := range entries {
		of, err := taskOf(i)
		if found := (*DamagedError)(nil); errors.As(err, &found) {
			of = found.Task
		}
		if of != "" {
			tasks = append(tasks, of)
		}
	}
	slices.Sort(tasks)
	return slices.Compact(tasks), nil
}

// IDs returns the IDs of a project's sessions, sorted.
func IDs(root string) ([]string, error) {
	entries, err := entriesOf(root)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.Name()
	}
	return ids, nil
}

// tasks returns the session directories, and a function that returns the task of the i-th.
// It completes the index first if too many sessions are missing from it.
func (f *Finder) tasks() ([]os.DirEntry, func(i int) (string, error), error) {
	entries, lines, err := f.list(false)
	if err != nil {
		return nil, nil, err
	}
	if f.completes(lines) {
		_, _ = f.Known() // damaged sessions are reported by the caller
		if entries, lines, err = f.list(false); err != nil {
			return nil, nil, err
		}
	}
	return entries, func(i int) (string, error) {
		if lines[i] != "" {
			return taskIn(lines[i]), nil
		}
		return f.taskOf(entries[i])
	}, nil
}

// completes reports whether the index must be completed before a search. It is completed only once.
func (f *Finder) completes(lines []string) bool {
	missing := 0
	for _, line := range lines {
		if line == "" {
			missing++
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	complete := missing > indexBatch && missing > len(lines)/8 && !f.completed
	f.completed = f.completed || complete
	return complete
}

// taskOf returns the task of a session, which is in its first event. The task is cached until the journal
// changes.
func (f *Finder) taskOf(e fs.DirEntry) (string, error) {
	at := filepath.Join(f.root, Dir, e.Name())
	stamp, isFile := f.stamp(e.Name())
	f.mu.Lock()
	known, ok := f.owner[e.Name()]
	f.mu.Unlock()
	if ok && isFile && e.IsDir() && known.stamp == stamp {
		return known.task, nil
	}
	if !e.IsDir() {
		_, err := Load(at)
		return "", err
	}
	first, started, err := firstEvent(at)
	switch {
	case err == nil && first.Seq > 0:
		if isFile && stamp.settledAt(f.now()) {
			f.mu.Lock()
			f.owner[e.Name()] = owner{stamp, first.Task}
			f.mu.Unlock()
		}
		return first.Task, nil
	case (err == nil || errors.Is(err, fs.ErrNotExist)) && !started:
		return "", fs.ErrNotExist // the session never started
	case err == nil, errors.Is(err, fs.ErrNotExist):
		err = errNoEvents
	}
	return "", damaged(at, err)
}

// firstEvent returns the first event of the session in dir. Seq is 0 if there is none. started reports
// whether the session must have one, because its views existed before.
func firstEvent(dir string) (first event.Event, started bool, err error) {
	first, err = event.First(filepath.Join(dir, eventsFile))
	if err == nil && first.Seq == 0 || errors.Is(err, fs.ErrNotExist) {
		if started = hasStarted(dir); started {
			first, err = event.First(filepath.Join(dir, eventsFile)) // try again, as in Load
		}
	}
	return first, started, err
}

// IsOver reports whether a session has ended permanently and no process is still cleaning up.
func IsOver(root, id string) bool {
	dir := filepath.Join(root, Dir, id)
	v, err := Load(dir)
	return err == nil && !held(dir) && (v.Status == Completed || v.Status == Failed || v.Status == Cancelled)
}

// Busy reports whether a process is writing the session in dir.
func Busy(dir string) bool { return held(dir) }

// Exists reports whether the project has a session with this ID.
func Exists(root, id string) bool {
	_, err := os.Stat(filepath.Join(root, Dir, id))
	return err == nil
}

// NeverStarted reports whether a session has no first event and no process is about to
// write one.
func NeverStarted(root, id string) bool {
	dir := filepath.Join(root, Dir, id)
	if held(dir) {
		return false
	}
	return hasNoEvents(Load(dir))
}
