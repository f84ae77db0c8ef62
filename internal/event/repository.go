package event

import (
	"fmt"
	"strings"
	"time"
)

// Severities of a RepositoryChange.
const (
	SeverityNoted = "noted" // normal work of a person, or a fetch
	SeverityHolds = "holds" // a person must decide before the task lands
	SeverityStops = "stops" // the step failed
)

// RepositoryChange is the data of RepositoryChanged: unexpected changes, during a step, of the
// parts of the repository that no program of a task may change.
type RepositoryChange struct {
	Severity string    `json:"severity"` // highest severity: noted, holds, stops
	Fenced   bool      `json:"fenced"`   // the step was sandboxed, so it did not make the change
	Since    time.Time `json:"since"`    // start of the step
	Changes  []Changed `json:"changes"`  // at most MaxChanged, most severe first
	More     int       `json:"more,omitempty"`
	Rescue   string    `json:"rescue,omitempty"`    // ref with both states; empty if all changes are only noted
	NotFiles string    `json:"not_files,omitempty"` // why the files of checkouts were not compared
}

// MaxChanged limits the changes in an event. The rescue ref has all of them.
const MaxChanged = 50

// Changed is a single change.
type Changed struct {
	Kind     string `json:"kind"` // ref, config, hook, checkout, index, worktree
	Name     string `json:"name"` // refs/heads/main, hooks/pre-commit, src/a.go
	Task     string `json:"task,omitempty"`
	Severity string `json:"severity"`
	Text     string `json:"text"` // description, such as: hook hooks/pre-commit was added
}

// fewChanged limits the changes in a summary.
const fewChanged = 3

// Summary describes the changes with the highest severity in one line.
func (c RepositoryChange) Summary() string {
	var what []string
	more := c.More
	for _, one := range c.Changes {
		switch {
		case one.Severity != c.Severity:
		case len(what) == fewChanged:
			more++
		default:
			what = append(what, one.Text)
		}
	}
	if more > 0 {
		what = append(what, fmt.Sprintf("%d more changes", more))
	}
	text := "the repository changed during the step: " + strings.Join(what, ", ")
	if c.NotFiles != "" {
		text += "; files were not compared: " + c.NotFiles
	}
	return text
}

// Undo returns the command that shows the changes, in parentheses, or "".
func (c RepositoryChange) Undo() string {
	if c.Rescue == "" {
		return ""
	}
	return " (to see them: coven rescue show " + c.Rescue + ")"
}
