package scheduler

// Decision is a person's answer about a change that is ready.
type Decision struct {
	Verdict Verdict
	Reason  string // of a rejection, or the changes that the person asks for
}

// Verdict is what a person decided.
type Verdict int

// The verdicts.
const (
	Later Verdict = iota // the change is left waiting
	Approved
	Rejected
	Revised   // the person asks for changes
	Elsewhere // the question was answered elsewhere
)
