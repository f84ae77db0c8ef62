package engine

import (
	"github.com/coven-run/coven/internal/event"
)

// Result is the result of a leaf, with everything that later steps may read. It is
// recorded before anything depends on it.
type Result = event.Result

// Unchanged returns the result of an agent that should have changed something and
// reports success without a change.
func Unchanged(r Result) Result {
	r.OK, r.Error, r.ErrorType = false, "no_changes: the agent says it is done and changed nothing", event.ErrorNoChanges
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
type Status = event.Status

// The states that a run of a session can end in.
const (
	Waiting     = event.StatusWaiting
	Completed   = event.StatusCompleted
	StatusFail  = event.StatusFailed
	Blocked     = event.StatusBlocked
	Interrupted = event.StatusInterrupted
	Cancelled   = event.StatusCancelled
)
