package engine

import "github.com/coven-run/coven/internal/event"

// Unchanged returns the result of an agent that should have changed something and
// reports success without a change.
func Unchanged(r event.Result) event.Result {
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
// machine is an error. Result and Status are recorded in the journal, so package event
// owns their types, and every package uses them under that name.
type Outcome struct {
	Verdict Verdict
	Result  event.Result
	Status  event.Status // blocked or failed, when Verdict is Stopped
	Path    string       // of the leaf that decided
}
