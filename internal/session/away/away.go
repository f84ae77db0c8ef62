// Package away describes the sessions of this machine that another machine has continued or ended.
package away

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// stateFile is the file of a State in the directory of a session.
const stateFile = "away.json"

// maxState limits the size of stateFile in bytes.
const maxState = 64 << 10

// maxEvents limits the size of the events of a session in bytes.
const maxEvents = 256 << 20

const fileMode = 0o600

// State is the state of such a session on its remote. Without a tip, the session is over there.
type State struct {
	Tip     string `json:"tip,omitempty"`     // commit with the record of the machine that has the session
	Machine string `json:"machine,omitempty"` // its name
	Remote  string `json:"remote,omitempty"`  // origin
	Landed  string `json:"landed,omitempty"`  // commit with which the task has landed; empty if it has not
	Had     string `json:"had,omitempty"`     // if it has landed: the last tip that this machine had, if the remote keeps all of its content
	Partial bool   `json:"partial,omitempty"` // the events here may not be those of Tip yet
	Status  string `json:"status,omitempty"`  // with which it ended without landing: failed, cancelled or completed; empty if the remote has no record of the end
	Why     string `json:"why,omitempty"`     // it ended so
}

// An Error means that a session cannot be written, because another machine has it.
type Error struct {
	State
	Task string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s has continued task %s", e.Machine, e.Task)
}

// CommandExit returns exit.Person.
func (e *Error) CommandExit() int { return exit.Person }

// NextCommand returns the command that brings the session here.
func (e *Error) NextCommand() string {
	return "coven resume " + shellword.Word(e.Task) + " --remote " + shellword.Word(e.Remote)
}

// Check returns an *Error if another machine has the session of a task in dir.
func Check(dir, task string) error {
	if s := Read(dir); s != nil && s.Tip != "" {
		return &Error{*s, task}
	}
	return nil
}

// Text describes the state in one line. detail is the one of the session.
func (s State) Text(detail string) string {
	switch {
	case s.Tip != "" && detail == "":
		return "on " + s.Machine
	case s.Tip != "":
		return "on " + s.Machine + ": " + detail
	case s.Landed != "":
		return fmt.Sprintf("another machine has landed it as %.12s", s.Landed)
	}
	return strings.TrimSuffix("it ended on another machine, without landing: "+oneline.Of(s.Why), ": ")
}

// Next returns the command that ends a session here that is over on its remote.
func (s State) Next(task string) string {
	if s.Landed != "" {
		return "coven resume " + shellword.Word(task)
	}
	return "coven cancel " + shellword.Word(task)
}

// Read returns the state of the session in dir, or nil if it is here.
func Read(dir string) *State {
	content, err := regularfile.ReadIn(dir, stateFile, maxState)
	s := &State{}
	if err != nil || json.Unmarshal(content, s) != nil {
		return nil
	}
	return s
}

// Write writes the state of the session in dir. With nil, it is here.
func Write(dir string, s *State) error {
	file := filepath.Join(dir, stateFile)
	if s == nil {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return regularfile.Replace(file, append(content, '\n'), fileMode)
}

// Rewrite makes events those of a file in dir, which the caller has locked. It appends them if it can, so that readers go on. Otherwise, it keeps the old content in the
// file copyName, and replaces the file.
func Rewrite(dir, name, copyName string, events []byte) error {
	f, err := regularfile.OpenFileIn(dir, name, os.O_RDWR, fileMode)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is synced
	here, err := regularfile.ReadIn(dir, name, maxEvents)
	if err != nil {
		return err
	}
	same := common(here, events)
	if same < len(here) {
		if err := regularfile.Replace(filepath.Join(dir, copyName), here, fileMode); err != nil {
			return err
		}
		return regularfile.Replace(filepath.Join(dir, name), events, fileMode)
	}
	if _, err := f.WriteAt(events[same:], int64(same)); err != nil {
		return err
	}
	return f.Sync()
}

// SameStart reports whether two texts begin with the same line, as the events of a session do.
func SameStart(a, b []byte) bool { return common(a, b) > 0 }

// Equal reports whether two states are the same.
func (s *State) Equal(other *State) bool {
	if s == nil || other == nil {
		return s == other
	}
	return *s == *other
}

// common returns the length of the lines that two texts have in common at their beginning.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return bytes.LastIndexByte(a[:n], '\n') + 1
}
