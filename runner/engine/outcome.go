package engine

import "github.com/coven-run/coven/internal/event"

// Unchanged returns the result of an agent that reported success without making the expected changes.
func Unchanged(r event.Result) event.Result {
	r.OK, r.Error, r.ErrorType = false, "no_changes: the agent reported success but changed nothing", event.ErrorNoChanges
	return r
}

// Verdict is the way a step ended, for the steps around it.
type Verdict int

// The verdicts.
const (
	Passed   Verdict = iota
	Failed           // and on_fail permits the run to continue
	Skipped          // the condition was false
	ExitLoop         // passed, and the loop around it ends
	Revise           // a person asked for changes: see revisable
	Stopped          // the run ends: see Outcome.Status
)

// Outcome is the end of a step. A failed step has an outcome; an error means that the machinery is broken.
// Result and Status are recorded in the journal, so their types belong to package event.
type Outcome struct {
	Verdict Verdict
	Result  event.Result
	Status  event.Status // blocked or failed, if Verdict is Stopped
	Path    string       // path of the leaf that determined the outcome
}

// ends reports whether the outcome ends the steps around the step, too.
func (o Outcome) ends() bool { return o.Verdict == Stopped || o.Verdict == Revise }
