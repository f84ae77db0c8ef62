// Package task provides the tasks of a repository: a Tracker, which is a beads
// JSONL file (.beads/issues.jsonl, one JSON object per line) or a program that
// stores them in a database (bd, br).
//
// Rules of the file:
//   - The user and other programs share the file. A change affects
//     only the specified members of one line; every other byte of the file, the
//     order of lines and members, unknown members, line endings and the final
//     newline (or its absence) are kept.
//   - If several lines have the same ID, the last one applies. Lines of another _type and
//     tombstones are kept but not listed.
//   - A file with git's conflict markers or with an invalid line is
//     rejected as a whole: nothing is listed and nothing is written.
//   - Every change is made under a lock, to a file that was read under that lock,
//     and replaces the file by rename: a reader, or the next start after kill -9,
//     sees the file before or after the change. Reading takes no lock.
//   - The lock file is in a directory given by the caller, outside of the working tree.
//     The directory of the tasks file is locked, too. No lock file appears next to the tasks.
//
// Rules of the program:
//   - Only one process runs at a time, for at most a minute, without a shell, a terminal or
//     input. No text or ID can be mistaken for a flag.
//   - The exit code reports whether a command succeeded; the output gives the reason.
//     The output formats of all supported versions are accepted.
//   - A claim is a single transaction of the program. A failed change is repeated
//     only after its effect was checked.
package task

import "time"

// Statuses that coven reads and writes. Other ones are preserved.
const (
	StatusOpen       = "open"
	StatusInProgress = "in_progress"
	StatusBlocked    = "blocked"
	StatusClosed     = "closed"
)

const (
	statusDeferred  = "deferred"
	statusPinned    = "pinned"
	statusTombstone = "tombstone"
)

// Task is a unit of work in a tracker. Its lists and maps are shared and must not be
// modified.
type Task struct {
	ID          string         `json:"id"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Acceptance  string         `json:"acceptance_criteria,omitempty"` // Markdown
	Design      string         `json:"design,omitempty"`              // Markdown
	Notes       string         `json:"notes,omitempty"`
	Status      string         `json:"status"`
	Type        string         `json:"issue_type"`
	Priority    int            `json:"priority"` // 0 is the most urgent
	Assignee    string         `json:"assignee,omitempty"`
	Parent      string         `json:"parent,omitempty"`
	ExternalRef string         `json:"external_ref,omitempty"`
	Labels      []string       `json:"labels,omitempty"`
	DependsOn   []Dependency   `json:"depends_on,omitempty"`
	CreatedAt   time.Time      `json:"created_at,omitzero"`
	UpdatedAt   time.Time      `json:"updated_at,omitzero"`
	StartedAt   time.Time      `json:"started_at,omitzero"`
	ClosedAt    time.Time      `json:"closed_at,omitzero"`
	DeferUntil  time.Time      `json:"defer_until,omitzero"`
	CloseReason string         `json:"close_reason,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"` // numbers are json.Number
	Comments    []Comment      `json:"comments,omitempty"`

	// large marks a placeholder for a task with too much text.
	large bool
	// aside marks records of a tracker that are not work: templates, pinned and
	// ephemeral records.
	aside bool
	// depends is the number of dependencies according to the tracker's program, which may print fewer. It is 0 if
	// the program does not say.
	depends int
}

// Dependency is a reference to another task. Type is spelled with hyphens: blocks,
// parent-child, related, ...
type Dependency struct {
	ID   string `json:"id"`
	Type string `json:"type"`

	gate gate
}

// gate says more about a dependency of type waits-for.
type gate struct {
	anyChild   bool // one closed child of the other task is enough
	alsoBlocks bool // the other task must be closed, too
}

// Comment is a remark on a task.
type Comment struct {
	Author    string    `json:"author,omitempty"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// New is a task to add.
type New struct {
	Title       string
	Description string
	Acceptance  []string // one criterion each, in plain text or Markdown
	Priority    int      // 0 (most urgent) to 4
	Labels      []string
	After       []string // IDs of tasks that must be closed first
	Type        string   // defaults to "task"
}
