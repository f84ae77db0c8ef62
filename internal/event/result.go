package event

import (
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/plugins/provider"
)

// Result is the result of a leaf, with all data that later steps may use. It is recorded
// before anything depends on it.
type Result struct {
	OK        bool           `json:"ok"`
	Output    string         `json:"output,omitempty"`  // an agent's final message, a script's output
	Outputs   map[string]any `json:"outputs,omitempty"` // named values from an agent's result block
	Summary   string         `json:"summary,omitempty"`
	Error     string         `json:"error,omitempty"` // reason for a failure, one line
	ErrorType ErrorType      `json:"error_type,omitempty"`
	ExitCode  int            `json:"exit_code,omitempty"`
	Commit    string         `json:"commit,omitempty"` // tip of the task branch, or of the target after a landing
	Tree      string         `json:"tree,omitempty"`
	Files     []string       `json:"files,omitempty"` // files that the step changed
	Receipts  []Receipt      `json:"receipts,omitempty"`
	Opinions  []Opinion      `json:"opinions,omitempty"`   // of a review
	Patch     string         `json:"patch,omitempty"`      // patch ID of the reviewed change
	Decided   bool           `json:"decided,omitempty"`    // an arbiter has decided
	Continue  bool           `json:"continue,omitempty"`   // the arbiter requests another round
	LastRound bool           `json:"last_round,omitempty"` // max_iterations allows no further round after the arbiter's decision
	Usage     provider.Usage `json:"usage,omitzero"`       // of the last run of the step's agent
	Used      budget.Amount  `json:"used,omitzero"`        // by all runs of the leaf, including interrupted ones
	Over      string         `json:"over,omitempty"`       // path of the step that timed out
	Agent     string         `json:"agent,omitempty"`      // the agent of an agent step
	Next      string         `json:"next,omitempty"`       // suggested coven command, "VERB ARGUMENTS"; empty for resume
	Rescue    string         `json:"rescue,omitempty"`     // ref with the changes that stopped the step; see ErrorRepository
	Tolerated bool           `json:"tolerated,omitempty"`  // the step failed but the run may continue
	Input     string         `json:"input"`                // sha256 of the leaf's input
}
