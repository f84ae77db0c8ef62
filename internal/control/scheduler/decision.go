package scheduler

// Decision is a person's answer about a change that is ready.
type Decision struct {
	Verdict Verdict
	Reason  string // for a rejection, or the requested changes
}

// Verdict is the person's choice.
type Verdict int

// The verdicts.
const (
	Later Verdict = iota // leave the change waiting
	Approved
	Rejected
	Revised   // the person requests changes
	Elsewhere // the question was answered elsewhere
)
