package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session/backup"
)

// Gone is the status of a session whose record was removed, although its task has a branch, a claim or snapshots.
const Gone event.Status = "gone"

// restoring is the prefix of directories of records that are being restored.
const restoring = "restoring-"

// BackUp makes Close copy the record to a store, if anything was written.
func (s *Session) BackUp(store backup.Store) {
	store.Files = recordFiles()
	s.copies, s.copied = &store, len(s.Events())
}

// backUp copies the record of a session that is not over, or removes the copy. The copy is a second line of defense: a
// disk on which it cannot be written is no reason to fail.
func (s *Session) backUp() {
	events := s.Events()
	if s.copies == nil || len(events) == s.copied || len(events) == 0 {
		return
	}
	if slices.ContainsFunc(events, func(e event.Event) bool { return e.Type == event.SessionCompleted }) {
		_ = s.copies.Remove(s.ID)
		return
	}
	h := backup.Header{Session: s.ID, Task: s.task, Time: events[len(events)-1].Time, Events: len(events)}
	var started event.Session
	if events[0].Decode(&started) == nil {
		h.Title = started.Query
	}
	_ = s.copies.Write(s.Dir, h)
	failpoint.Point("session.kept")
}

// recordFiles returns the files of a session that it needs to continue. All others are logs and views.
func recordFiles() []string {
	return []string{eventsFile, planFile, messagesFile, rejectedFile, ReviewFile}
}

// Restore creates the record of a session again from its copy. The error names a copy that is damaged, or belongs to
// another repository. A session that exists is never changed.
func Restore(store backup.Store, root, id string, now func() time.Time) error {
	store.Files = recordFiles()
	return install(root, id, now, func(dir string) error {
		h, err := store.Extract(id, dir)
		if err != nil {
			return err
		}
		return checkRestored(store, h, dir)
	})
}

// install creates the record of a session. fill writes its files to an empty directory.
func install(root, id string, now func() time.Time, fill func(dir string) error) error {
	if _, err := os.Lstat(filepath.Join(root, Dir, id)); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("session %s exists", id))
	}
	if err := errors.Join(makeDir(root, runDir), makeDir(root, Dir)); err != nil {
		return fmt.Errorf("restore session %s: %w", id, err)
	}
	temp, err := os.MkdirTemp(filepath.Join(root, runDir), restoring)
	if err != nil {
		return fmt.Errorf("restore session %s: %w", id, err)
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it was renamed, or the next run of doctor finds it
	if err = fill(temp); err == nil {
		failpoint.Point("session.restored.files")
		forget(root, id, now())
		err = os.Rename(temp, filepath.Join(root, Dir, id)) // fails if another process has restored it
	}
	if err != nil {
		return fmt.Errorf("restore session %s: %w", id, err)
	}
	if err := regularfile.SyncDir(filepath.Join(root, Dir)); err != nil {
		return fmt.Errorf("restore session %s: %w", id, err)
	}
	s, err := Open(root, id, now)
	if err != nil {
		return err
	}
	return errors.Join(s.writeViews(), s.Close())
}

// checkRestored returns an error if the files in dir are not those of the session that a copy names.
func checkRestored(store backup.Store, h backup.Header, dir string) error {
	repository, err := store.Repository()
	if err != nil {
		return err
	}
	if h.Repository != repository {
		return &backup.DamagedError{Path: store.Path(h.Session), Err: errors.New("it belongs to another repository, at " + h.Root)}
	}
	if err := checkRecord(dir, h.Session, h.Task); err != nil {
		return &backup.DamagedError{Path: store.Path(h.Session), Err: err}
	}
	return nil
}

// checkRecord returns an error if the files in dir are not those of a session of a task.
func checkRecord(dir, id, task string) error {
	first, err := event.First(filepath.Join(dir, eventsFile))
	if err == nil && (first.Session != id || first.Task != task) {
		err = fmt.Errorf("its events are those of session %s of task %s", first.Session, first.Task)
	}
	v := View{}
	if err == nil {
		v, err = Load(dir)
	}
	if err == nil && v.Damage != "" {
		err = errors.New(v.Damage)
	}
	return err
}
