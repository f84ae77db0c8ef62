// Package reviewer is the contract of reviewer plugins: judging a change before
// it lands.
//
// A reviewer is given the task, the change and the worktree to read; it says pass
// or fail and what it found. It writes nothing: coven compares the worktree
// afterwards, puts it back and fails the review that changed it. It may be asked
// about several tasks at the same time.
package reviewer

import (
	"context"
	"strconv"
	"strings"

	"github.com/coven-run/coven/plugins/hostservice"
)

// Reviewer judges changes.
type Reviewer interface {
	// Review looks at a change. A change that is not good enough is no error: its
	// verdict is Fail. An error says that it could not be judged, and fails the
	// step. ctx ends when the time of the step is up or the run is stopped; an
	// answer after that is not heard. host holds until Review returns.
	Review(ctx context.Context, change Change, host hostservice.Services) (Review, error)
}

// Change is what is to be judged. Texts that are not UTF-8 have U+FFFD where they
// are not.
type Change struct {
	Task      Task
	Diff      string // unified, from Base to the worktree as it is, with files that git does not know yet
	Truncated string // what was left out of Diff, in words; empty: nothing. See hostservice.Services.Diff
	Files     []File // all of them, also those left out of Diff
	Dir       string // absolute: the worktree, to be read
	Base      string // commit that Diff begins at
	Tree      string // git tree of the worktree as it is
	Round     int    // 1, 2, ...: how often the change was reviewed in this step
	Previous  []Finding
	Options   map[string]string // what the grimoire says under `with`
}

// Task is what was asked for.
type Task struct {
	ID          string
	Title       string
	Description string   // Markdown
	Acceptance  []string // criteria
}

// File is a file that the change touches.
type File struct {
	Path    string // relative to the worktree, with slashes
	From    string // where it was, of a renamed one
	Status  string // A, M, D, R or T, as git has it
	Binary  bool
	Added   int // lines
	Deleted int // lines
}

// Verdict says whether a change may land.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
)

// Severity says how much a finding weighs.
type Severity string

// The severities. An Error fails the review, whatever its verdict is.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Finding is one remark.
type Finding struct {
	Severity   Severity `json:"severity"`
	File       string   `json:"file,omitempty"` // relative to the worktree, with slashes; empty: about the whole change
	Line       int      `json:"line,omitempty"` // from 1; 0: about the whole file
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"` // how to mend it
}

// Where is the place of a finding: file:line, or file; empty when it is about the
// whole change.
func (f Finding) Where() string {
	if f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// String is the finding as people read it, its suggestion left out:
// "error: main.go:7: the error is dropped".
func (f Finding) String() string {
	text := string(f.Severity) + ": "
	if f.File != "" {
		text += f.Where() + ": "
	}
	return text + strings.TrimSpace(f.Message)
}

// Review is what a reviewer says. For example:
//
//	reviewer.Review{
//		Verdict:  reviewer.Fail,
//		Findings: []reviewer.Finding{{Severity: reviewer.Error, File: "main.go", Line: 7, Message: "the error is dropped"}},
//	}
type Review struct {
	Verdict     Verdict   `json:"verdict"`
	Findings    []Finding `json:"findings,omitempty"`
	Suggestions []string  `json:"suggestions,omitempty"` // about the change as a whole; nothing depends on them
	Summary     string    `json:"summary,omitempty"`     // a line or two for people
}
