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
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Damaged is the status of a session whose record cannot be read.
const Damaged event.Status = "damaged"

// DamagedDir is the directory of damaged records that were set aside, relative to the project.
const DamagedDir = ".coven/run/damaged"

// maxMetadata limits the size of metadata.json in bytes.
const maxMetadata = 16 << 20

// DamagedError reports a session whose record cannot be read. Other sessions are not affected.
type DamagedError struct {
	Session string
	Dir     string
	Task    string    // empty if unknown
	Title   string    // title of the task
	Started time.Time // if known, else the modification time of the directory
	Err     error
}

// Error names the session and the reason.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("session %s is damaged: %v", e.Session, e.Err)
}

// Unwrap returns the reason.
func (e *DamagedError) Unwrap() error { return e.Err }

// View returns a view of the session for lists.
func (e *DamagedError) View() View {
	return View{
		ID: e.Session, Dir: e.Dir, Task: e.Task, Info: event.Session{Query: e.Title},
		State: State{Status: Damaged, Detail: e.Err.Error(), Next: e.NextCommand()}, Timing: Timing{Started: e.Started, Updated: e.Started},
	}
}

// DamagedIn splits an error of List into the damaged sessions and the remaining error.
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

// errNoEvents reports a session that has views but no events.
var errNoEvents = fmt.Errorf("%s is missing or empty although the session has started", eventsFile)

// damaged returns a *DamagedError for the session in dir.
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

// hasStarted reports whether dir contains views, which are written after the first event.
func hasStarted(dir string) bool {
	for _, name := range []string{metadataFile, storyFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// planDamage returns the reason why the frozen plan in dir is unusable, or "". It
// does not parse the plan, but only looks for a key of a plan.
func planDamage(dir string) string {
	plan, err := regularfile.ReadIn(dir, planFile, maxPlan)
	switch tooLarge := (*regularfile.SizeError)(nil); {
	case errors.Is(err, fs.ErrNotExist):
		return planFile + " is missing"
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("%s is larger than %d bytes", planFile, maxPlan)
	case err != nil:
		return fmt.Sprintf("%s cannot be read: %v", planFile, err)
	case !planKey.Match(plan):
		return planFile + " is not a plan"
	}
	return ""
}

// planKey matches the grimoire key of a plan.
var planKey = lazyregexp.New(`(?m)^grimoire:`)

// SetAside moves a damaged record to DamagedDir and returns its path relative
// to root. It returns ErrBusy if a process is writing the record.
func SetAside(root string, e *DamagedError) (string, error) {
	from := filepath.Join(Dir, e.Session)
	if held(filepath.Join(root, from)) {
		return "", fmt.Errorf("session %s: %w", e.Session, ErrBusy)
	}
	if err := makeDir(root, DamagedDir); err != nil {
		return "", fmt.Errorf("set session %s aside: %w", e.Session, err)
	}
	to := filepath.Join(DamagedDir, e.Session)
	for n := 2; ; n++ {
		_, err := os.Lstat(filepath.Join(root, to))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("set session %s aside: %w", e.Session, err)
		}
		to = filepath.Join(DamagedDir, fmt.Sprintf("%s-%d", e.Session, n))
	}
	if err := os.Rename(filepath.Join(root, from), filepath.Join(root, to)); err != nil {
		return "", fmt.Errorf("set session %s aside: %w", e.Session, err)
	}
	return to, nil
}
