package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Limits of a review.
const (
	maxState    = 64 << 20 // bytes
	maxComments = 500
	maxText     = 16 << 10 // bytes of a text or suggestion
	maxSent     = 48 << 10 // bytes of all comments that are sent together: the agent's prompt must have room for them
)

// lockName is the file in the session's directory that is locked while the state changes.
const lockName = "review.lock"

// state is the content of the file session.ReviewFile in a session's directory.
type state struct {
	Version  int               `json:"v"`
	Next     int               `json:"next"` // number of the next comment
	Comments []Comment         `json:"comments,omitempty"`
	Viewed   map[string]string `json:"viewed,omitempty"` // by path, the object ID and mode of the content
	Looked   []string          `json:"looked,omitempty"` // the last two trees that were looked at
}

// A DamagedError means that the file with the review of a session cannot be read.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the comments in %s cannot be read: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// CommandExit returns the exit code of commands.
func (e *DamagedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that sets the file aside.
func (e *DamagedError) NextCommand() string {
	return "mv " + shellword.Word(e.Path) + " " + shellword.Word(e.Path+".damaged")
}

func load(dir string) (state, error) {
	s := state{Version: 1, Next: 1}
	text, err := regularfile.ReadIn(dir, session.ReviewFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Version != 1 {
		err = fmt.Errorf("version %d is not known to this coven", s.Version)
	}
	if err != nil {
		return s, &DamagedError{filepath.Join(dir, session.ReviewFile), err}
	}
	return s, nil
}

// change changes the state of a session. Other processes wait.
func change(dir string, by func(*state) error) error {
	lock, err := regularfile.OpenFileIn(dir, lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("lock the review: %w", err)
	}
	defer lock.Close() //nolint:errcheck // ends the lock
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the review: %w", err)
	}
	s, err := load(dir)
	if err != nil {
		return err
	}
	if err := by(&s); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err == nil {
		err = regularfile.Replace(filepath.Join(dir, session.ReviewFile), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("store the review: %w", err)
	}
	return nil
}

// last returns the last tree that was looked at and is not the present one.
func (s state) last(present string) string {
	for i := len(s.Looked) - 1; i >= 0; i-- {
		if s.Looked[i] != present {
			return s.Looked[i]
		}
	}
	return ""
}

// look records that a person looks at a tree.
func (s *state) look(tree string) {
	if n := len(s.Looked); n > 0 && s.Looked[n-1] == tree {
		return
	}
	s.Looked = append(s.Looked, tree)
	s.Looked = s.Looked[max(len(s.Looked)-2, 0):]
}
