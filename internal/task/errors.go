package task

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

var (
	// ErrNotFound reports that the tracker has no task with the ID.
	ErrNotFound = exit.Sentinel(exit.Failed, "coven task list", "no such task")
	// ErrClaimed reports that another actor has claimed the task. A *ClaimedError
	// wraps it.
	ErrClaimed = exit.Sentinel(exit.Person, "", "task is claimed")
	// ErrNotClaimable reports that the task's status does not allow a claim. A
	// *StatusError wraps it.
	ErrNotClaimable = exit.Sentinel(exit.Person, "", "task is not claimable")
	// ErrInvalid reports that a new task is not acceptable.
	ErrInvalid = exit.Sentinel(exit.Usage, "", "invalid task")
)

// ClaimedError names the owner of a claimed task.
type ClaimedError struct{ ID, Owner string }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("task %s is claimed by %s", e.ID, e.Owner)
}

func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// StatusError names the status that prevents a claim.
type StatusError struct{ ID, Status string }

func (e *StatusError) Error() string {
	return fmt.Sprintf("task %s cannot be claimed: its status is %s", e.ID, e.Status)
}

func (e *StatusError) Unwrap() error { return ErrNotClaimable }

// BlockedError lists the open tasks that block a task.
type BlockedError struct {
	ID       string
	Blockers []string
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("task %s is blocked by %s", e.ID, strings.Join(e.Blockers, ", "))
}

// CycleError lists tasks that wait for each other; the last one waits for the first one.
type CycleError struct{ IDs []string }

func (e *CycleError) Error() string {
	return "tasks wait for each other: " + strings.Join(append(e.IDs[:len(e.IDs):len(e.IDs)], e.IDs[0]), " -> ")
}

// BackendError reports that coven cannot read the storage of the tasks.
type BackendError struct {
	Dir     string // the .beads directory
	Backend string // dolt, or the value in its metadata.json
	Program string // bd or br, which is not on PATH; empty if only a file was requested
	Export  string // the JSONL file next to the database, if there is one
}

// installs explains how to install a program.
var installs = map[string]string{
	BD: "npm install -g @beads/bd, brew install beads, or go install github.com/steveyegge/beads/cmd/bd@latest",
	BR: "cargo install beads_rust",
}

func (e *BackendError) Error() string {
	program := cmp.Or(e.Program, BD)
	text := fmt.Sprintf("%s: the tasks are in a %s database, which only %s reads", e.Dir, e.Backend, program)
	if e.Backend == directoryOnly {
		text = fmt.Sprintf("%s: the tracker is set to %s", e.Dir, program)
	}
	if e.Program != "" {
		text += fmt.Sprintf(", and %s is not on PATH. Install it (%s)", program, installs[program])
	} else {
		text += ". Use it as the tracker"
	}
	if e.Export != "" {
		text += fmt.Sprintf(", or set tracker: jsonl to work on %s, which %s may have left behind the database", e.Export, program)
	}
	return text + fmt.Sprintf(", or work on a copy made where %s is (mkdir DIR; bd export -o DIR/issues.jsonl; BEADS_DIR=DIR coven run, with DIR an absolute path), "+
		"or without a tracker (coven run -p PROMPT)", program)
}

// RedirectError reports that a .beads directory only refers to another one.
type RedirectError struct{ Dir, To string }

func (e *RedirectError) Error() string {
	return fmt.Sprintf("%s: the file redirect points to %q, which coven does not follow: set BEADS_DIR to the directory that holds the tasks", e.Dir, e.To)
}

// ConflictMarkersError reports git conflict markers in a file. Nothing was written.
type ConflictMarkersError struct {
	File string
	Line int // starting at 1
}

func (e *ConflictMarkersError) Error() string {
	return fmt.Sprintf("%s:%d: git conflict marker; nothing was written. Resolve it: delete the marker lines and keep one line of each task, then run the command again", e.File, e.Line)
}

// CorruptError reports an invalid line of a file, and the reason. Nothing was written.
type CorruptError struct {
	File   string
	Line   int // starting at 1
	Column int // in bytes, starting at 1
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s; nothing was written. Repair the line, or take it from an earlier version (git log -p -- %s), then run the command again",
		e.File, e.Line, e.Column, e.Reason, shellword.Quote(e.File))
}
