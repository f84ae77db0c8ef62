package scheduler

// Decision is what a person says about a change that is ready.
type Decision struct {
	Verdict verdict
	Reason  string // of a rejection
}

type verdict int

// The verdicts.
const (
	later verdict = iota
	Approved
	Rejected
	Elsewhere // already answered, or the session is running
)
