package engine

import "github.com/coven-run/coven/internal/event"

// Unchanged returns the result of an agent that reports success but did not change
// anything, although it should have.
func Unchanged(r event.Result) event.Result {
	r.OK, r.Error, r.ErrorType = false, "no_changes: the agent reported success but changed nothing", event.ErrorNoChanges
	return r
}

// Verdict tells the steps around a step how it ended.
type Verdict int

// The verdicts.
const (
	Passed   Verdict = iota
	Failed           // and on_fail lets the run continue
	Skipped          // the condition was false
	ExitLoop         // passed, and the loop around it ends
	Revise           // a person asks for changes: see revisable
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
