package scheduler

// Decision is a person's answer about a change that is ready.
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
	Elsewhere // the question was answered elsewhere
)
