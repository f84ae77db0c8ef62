package event

import (
	"fmt"
	"strings"
	"time"
)

// The severities of a RepositoryChange.
const (
	SeverityNoted = "noted" // a person's daily work, or a fetch
	SeverityHolds = "holds" // a person decides before the task lands
	SeverityStops = "stops" // the step failed
)

// RepositoryChange is the data of RepositoryChanged: what changed, while a step ran, of the
// parts of the repository that no program of a task may change, and is not coven's own work.
type RepositoryChange struct {
	Severity string    `json:"severity"` // the strongest one: noted, holds, stops
	Fenced   bool      `json:"fenced"`   // the step was sandboxed: it cannot have been the step
	Since    time.Time `json:"since"`    // when the step started
	Changes  []Changed `json:"changes"`  // at most MaxChanged, the most severe first
	More     int       `json:"more,omitempty"`
	Rescue   string    `json:"rescue,omitempty"`    // ref that has both states; empty: all are noted
	NotFiles string    `json:"not_files,omitempty"` // why files of checkouts were not compared
}

// MaxChanged limits the changes in an event. The rescue has all.
const MaxChanged = 50

// Changed is one thing that changed.
type Changed struct {
	Kind     string `json:"kind"` // ref, config, hook, checkout, index, worktree
	Name     string `json:"name"` // refs/heads/main, hooks/pre-commit, src/a.go
	Task     string `json:"task,omitempty"`
	Severity string `json:"severity"`
	Text     string `json:"text"` // hook hooks/pre-commit was added
}

// fewChanged limits the changes in a summary.
const fewChanged = 3

// Summary returns what happened, in one line. It names only changes of the strongest severity.
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

// Undo returns the command that undoes the changes, as the end of a sentence, or "".
func (c RepositoryChange) Undo() string {
	if c.Rescue == "" {
		return ""
	}
	return " (to see them: coven rescue show " + c.Rescue + ")"
}
