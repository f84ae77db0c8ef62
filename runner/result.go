package runner

import (
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Result is the result of a leaf.
type Result = event.Result

// Unchanged is the result of an agent that was to change something, says that it is
// done, and changed nothing.
func Unchanged(r Result) Result {
	r.OK, r.Error, r.ErrorType = false, "no_changes: the agent says it is done and changed nothing", event.ErrorNoChanges
	return r
}

// Wait says that the run cannot go on now, and nothing is wrong: a person, a
// limit or the checkout has to change first. It travels as an error, so the
// leaf that returned it has no recorded result and is asked again on resume.
type Wait struct {
	Reason event.WaitReason
	Detail string
	Next   string    // the coven command that goes on: approve, resume
	More   string    // what is added to a budget: usd=+5
	Until  time.Time // when going on is of use; zero: at any time
}

func (w *Wait) Error() string { return "waiting (" + string(w.Reason) + "): " + w.Detail }

// Verdict is what a step means for the steps around it.
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
