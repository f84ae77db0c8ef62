// Package reviewer defines the contract of reviewer plugins, which review a change before it lands.
//
// A reviewer gets the task, the change and read access to the worktree. It returns a verdict and findings.
// It must not write to the worktree: coven compares the worktree afterwards, reverts every change and fails
// the review. A reviewer may be called for several tasks concurrently.
package reviewer

import (
	"context"
	"strconv"
	"strings"

	"github.com/coven-run/coven/plugins/hostservice"
)

// Reviewer reviews changes.
type Reviewer interface {
	// Review reviews a change. If the change is not good enough, the verdict is Fail and the error is nil.
	// An error means that the review was impossible, and fails the step. ctx is done when the step times
	// out or the run is stopped; later answers are ignored. host is valid until Review returns.
	Review(ctx context.Context, change Change, host hostservice.Services) (Review, error)
}

// Change is the change under review. U+FFFD replaces invalid UTF-8 in its texts.
type Change struct {
	Task      Task
	Diff      string // unified diff from Base to the current worktree, including untracked files
	Truncated string // describes the omitted part of the diff, if any; see hostservice.Services.Diff
	Files     []File // all files, including those omitted from Diff
	Dir       string // absolute path of the worktree, which the reviewer may read
	Base      string // base commit of Diff
	Tree      string // git tree of the current worktree
	Round     int    // round of review in this step, from 1
	Previous  []Finding
	Options   map[string]string // the options under `with` in the grimoire
}

// Task is the task that the change implements.
type Task struct {
	ID          string
	Title       string
	Description string   // Markdown
	Acceptance  []string // acceptance criteria
}

// File is a file touched by the change.
type File struct {
	Path    string // relative to the worktree, with slashes
	From    string // previous path, if renamed
	Status  string // A, M, D, R or T, as in git
	Binary  bool
	Added   int // lines
	Deleted int // lines
}

// Verdict is the result of a review.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
)

// Severity is the severity of a finding.
type Severity string

// The severities. A finding of severity Error fails the review regardless of the verdict.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Finding is one remark about a change.
type Finding struct {
	Severity   Severity `json:"severity"`
	File       string   `json:"file,omitempty"` // relative to the worktree, with slashes; empty for the whole change
	Line       int      `json:"line,omitempty"` // from 1; 0 for the whole file
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion,omitempty"` // how to fix it
}

// Where returns the location of a finding as "file:line" or "file". It returns "" if the finding concerns
// the whole change.
func (f Finding) Where() string {
	if f.Line == 0 {
		return f.File
	}
	return f.File + ":" + strconv.Itoa(f.Line)
}

// String formats the finding without its suggestion, such as "error: main.go:7: the error is dropped".
func (f Finding) String() string {
	text := string(f.Severity) + ": "
	if f.File != "" {
		text += f.Where() + ": "
	}
	return text + strings.TrimSpace(f.Message)
}

// Review is the answer of a reviewer. For example:
//
//	reviewer.Review{
//		Verdict:  reviewer.Fail,
//		Findings: []reviewer.Finding{{Severity: reviewer.Error, File: "main.go", Line: 7, Message: "the error is dropped"}},
//	}
type Review struct {
	Verdict     Verdict   `json:"verdict"`
	Findings    []Finding `json:"findings,omitempty"`
	Suggestions []string  `json:"suggestions,omitempty"` // about the whole change; informational
	Summary     string    `json:"summary,omitempty"`     // one or two lines for people
}
