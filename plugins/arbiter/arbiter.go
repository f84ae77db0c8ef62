// Package arbiter defines the contract of arbiter plugins, which decide whether a loop
// of work and review continues.
//
// An arbiter is called only if a review failed. Like a reviewer, it must not write to
// the worktree, and it may be called for several tasks concurrently.
package arbiter

import (
	"context"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Arbiter decides whether findings justify another round.
type Arbiter interface {
	// Decide decides whether the loop continues. If it does, an agent fixes the findings and the change is
	// reviewed again. Otherwise the loop ends and the findings stay open for the person who approves the
	// merge. An error fails the step. For ctx and host, see reviewer.Reviewer.
	Decide(ctx context.Context, question Question, host hostservice.Services) (Decision, error)
}

// Question is the input of a decision.
type Question struct {
	Task      reviewer.Task
	Output    string    // the final message of the agent whose work was reviewed
	Opinions  []Opinion // of this round, in grimoire order
	History   []Round   // previous rounds, oldest first
	Round     int       // the current round, from 1
	MaxRounds int       // the loop always ends after this round
	Options   map[string]string
}

// Opinion is the review of one reviewer.
type Opinion struct {
	Reviewer string             `json:"reviewer"` // name in the grimoire
	Verdict  reviewer.Verdict   `json:"verdict"`  // after Review.Counted
	Findings []reviewer.Finding `json:"findings,omitempty"`
}

// Round is a completed round.
type Round struct {
	N        int       `json:"n"`
	Output   string    `json:"output,omitempty"`
	Opinions []Opinion `json:"opinions"`
	Reason   string    `json:"reason,omitempty"` // why the arbiter continued the loop
}

// Decision is the answer of an arbiter. For example:
//
//	arbiter.Decision{Continue: false, Reason: "only warnings are left"}
type Decision struct {
	Continue bool
	Reason   string // one line for people and for the agent that fixes; at most 16 KiB
}
