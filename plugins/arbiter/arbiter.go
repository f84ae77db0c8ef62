// Package arbiter is the contract of arbiter plugins: whether a loop of work and
// review goes on.
//
// It is asked only when a reviewer is not content. Like a reviewer it writes
// nothing, and may be asked about several tasks at the same time.
package arbiter

import (
	"context"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Arbiter decides whether findings are worth another round.
type Arbiter interface {
	// Decide says whether the loop goes on: the findings are then mended and the
	// change is reviewed again. Otherwise the loop ends, and the findings stay for
	// the person who reviews the landing. An error fails the step. ctx and host are
	// as for reviewer.Reviewer.
	Decide(ctx context.Context, question Question, host hostservice.Services) (Decision, error)
}

// Question is what an arbiter decides on.
type Question struct {
	Task      reviewer.Task
	Output    string    // the final message of the agent whose work was reviewed
	Opinions  []Opinion // of this round, in the order of the grimoire
	History   []Round   // the rounds before, the oldest first
	Round     int       // this one: 1, 2, ...
	MaxRounds int       // after which the loop ends in any case
	Options   map[string]string
}

// Opinion is what one reviewer said.
type Opinion struct {
	Reviewer string             `json:"reviewer"` // its name in the grimoire
	Verdict  reviewer.Verdict   `json:"verdict"`  // as it counts
	Findings []reviewer.Finding `json:"findings,omitempty"`
}

// Round is a round that is over.
type Round struct {
	N        int       `json:"n"`
	Output   string    `json:"output,omitempty"`
	Opinions []Opinion `json:"opinions"`
	Reason   string    `json:"reason,omitempty"` // why the arbiter let the loop go on
}

// Decision is what an arbiter says. For example:
//
//	arbiter.Decision{Continue: false, Reason: "only warnings are left"}
type Decision struct {
	Continue bool
	Reason   string // a line for people, and for whoever mends; at most 16 KiB
}
