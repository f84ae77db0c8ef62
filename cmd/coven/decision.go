package main

// decision is what a person says about a change that is ready.
type decision struct {
	verdict verdict
	reason  string // of a rejection
}

type verdict int

// The verdicts.
const (
	later verdict = iota
	approved
	rejected
	elsewhere // somebody has answered, or the session goes on
)
