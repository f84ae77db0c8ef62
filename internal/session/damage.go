package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/regularfile"
)

// Damaged is the state of a session whose record cannot be read.
const Damaged event.Status = "damaged"

// damagedDir is where damaged records are set aside, below a project's root.
const damagedDir = ".coven/run/damaged"

// maxMetadata is how many bytes of metadata.json are read.
const maxMetadata = 16 << 20

// DamagedError reports a session whose record cannot be read. It concerns this
// session only.
type DamagedError struct {
	Session string
	Dir     string
	Task    string    // empty: the record does not say
	Title   string    // of the task
	Started time.Time // as far as is known; else when the directory was changed
	Err     error
}

// Error names the session and the reason.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("session %s is damaged: %v", e.Session, e.Err)
}

// Unwrap returns the reason.
func (e *DamagedError) Unwrap() error { return e.Err }

// View is the session as a list shows it.
func (e *DamagedError) View() View {
	return View{
		ID: e.Session, Dir: e.Dir, Task: e.Task, Status: Damaged, Detail: e.Err.Error(), Started: e.Started, Updated: e.Started,
		Info: event.Session{Query: e.Title},
	}
}

// DamagedIn returns the damaged sessions that an error of List names, and the rest of
// the error.
func DamagedIn(err error) (damaged []*DamagedError, rest error) {
	one := (*DamagedError)(nil)
	switch joined := err.(type) { //nolint:errorlint // its own parts are looked at
	case nil:
		return nil, nil
	case interface{ Unwrap() []error }:
		for _, part := range joined.Unwrap() {
			found, other := DamagedIn(part)
			damaged, rest = append(damaged, found...), errors.Join(rest, other)
		}
		return damaged, rest
	}
	if errors.As(err, &one) {
		return []*DamagedError{one}, nil
	}
	return nil, err
}

// errNoEvents reports a session whose views exist and whose events do not.
var errNoEvents = fmt.Errorf("%s is missing or empty, and the session has begun", eventsFile)

// damaged makes a *DamagedError of what is wrong with the session in dir.
func damaged(dir string, err error) error {
	if known := (*DamagedError)(nil); errors.As(err, &known) {
		return err
	}
	found := &DamagedError{Session: filepath.Base(dir), Dir: dir, Err: err}
	if info, err := os.Lstat(dir); err == nil {
		found.Started = info.ModTime()
	}
	var meta metadata
	if data, err := regularfile.ReadIn(dir, metadataFile, maxMetadata); err == nil && json.Unmarshal(data, &meta) == nil {
		found.Task = meta.Task
		if started, err := time.Parse(time.RFC3339, meta.StartedAt); err == nil {
			found.Started = started
		}
	}
	if first, err := event.First(filepath.Join(dir, eventsFile)); err == nil && first.Type == event.SessionStarted {
		var info event.Session
		if first.Decode(&info) == nil {
			found.Task, found.Title, found.Started = first.Task, info.Query, first.Time
		}
	}
	return found
}

// hasStarted reports whether the views in dir show that the session had events.
func hasStarted(dir string) bool {
	for _, name := range []string{metadataFile, storyFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// planDamage is why the frozen plan in dir cannot be used; empty when it can. What is
// in it is looked at by whoever resumes the session.
func planDamage(dir string) string {
	f, err := regularfile.OpenIn(dir, planFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return planFile + " is missing"
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", planFile, err)
	}
	defer f.Close() //nolint:errcheck // read only
	if info, err := f.Stat(); err == nil && info.Size() > maxPlan {
		return fmt.Sprintf("%s is larger than %d bytes", planFile, maxPlan)
	}
	return ""
}

// SetAside moves a damaged record out of the way of the others, and returns where it
// is now, relative to root. Nothing of it is lost. ErrBusy when a process writes it.
func SetAside(root string, e *DamagedError) (string, error) {
	from := filepath.Join(Dir, e.Session)
	if held(filepath.Join(root, from)) {
		return "", fmt.Errorf("session %s: %w", e.Session, ErrBusy)
	}
	if err := makeDir(root, damagedDir); err != nil {
		return "", fmt.Errorf("set session %s aside: %w", e.Session, err)
	}
	to := filepath.Join(damagedDir, e.Session)
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(root, to)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = filepath.Join(damagedDir, fmt.Sprintf("%s-%d", e.Session, n))
	}
	if err := os.Rename(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
		return "", fmt.Errorf("set session %s aside: %w", e.Session, err)
	}
	return to, nil
}
