package engine

import (
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// Result is the result of a leaf, with everything that later steps may read. It is
// recorded before anything depends on it.
type Result struct {
	OK        bool            `json:"ok"`
	Output    string          `json:"output,omitempty"`  // an agent's final message, a script's output
	Outputs   map[string]any  `json:"outputs,omitempty"` // named values from an agent's result block
	Summary   string          `json:"summary,omitempty"`
	Error     string          `json:"error,omitempty"`      // why not OK, one line
	ErrorType string          `json:"error_type,omitempty"` // timeout, process_exit, no_changes, ...
	ExitCode  int             `json:"exit_code,omitempty"`
	Commit    string          `json:"commit,omitempty"` // the task branch, or the target after a landing
	Tree      string          `json:"tree,omitempty"`
	Files     []string        `json:"files,omitempty"` // what the step changed
	Receipts  []event.Receipt `json:"receipts,omitempty"`
	Opinions  []event.Opinion `json:"opinions,omitempty"`  // of a review
	Patch     string          `json:"patch,omitempty"`     // patch id that a review is about
	Decided   bool            `json:"decided,omitempty"`   // an arbiter has
	Continue  bool            `json:"continue,omitempty"`  // what it decided: another round is worth it
	Usage     provider.Usage  `json:"usage,omitzero"`      // of the last run of its agent
	Used      budget.Amount   `json:"used,omitzero"`       // by all runs of the leaf, those that were cut off among them
	Over      string          `json:"over,omitempty"`      // path of the step whose time was up
	Agent     string          `json:"agent,omitempty"`     // who did it, of an agent step
	Next      string          `json:"next,omitempty"`      // the coven command that helps, "VERB ARGUMENTS"; empty: resume
	Tolerated bool            `json:"tolerated,omitempty"` // it failed, and the run may go on
	Input     string          `json:"input"`               // sha256 of what the leaf was given
}

// Unchanged returns the result of an agent that should have changed something and
// reports success without a change.
func Unchanged(r Result) Result {
	r.OK, r.Error, r.ErrorType = false, "no_changes: the agent says it is done and changed nothing", "no_changes"
	return r
}

// Verdict is what the end of a step means for the steps around it.
type Verdict int

// The verdicts.
const (
	Passed   Verdict = iota
	Failed           // and on_fail let the run go on
	Skipped          // its condition was false
	ExitLoop         // passed, and the loop around it ends
	Stopped          // the run ends here: see Outcome.Status
)

// Outcome is the end of a step's run: a failed step is an outcome, a broken
// machine is an error.
type Outcome struct {
	Verdict Verdict
	Result  Result
	Status  Status // blocked or failed, when Verdict is Stopped
	Path    string // of the leaf that decided
}

// Status is the state of a session.
type Status string

// The states that a run of a session can end in.
const (
	Waiting     Status = "waiting"
	Completed   Status = "completed"
	StatusFail  Status = "failed"
	Blocked     Status = "blocked"
	Interrupted Status = "interrupted"
	Cancelled   Status = "cancelled"
)
