package usage

import (
	"time"

	"github.com/coven-run/coven/internal/budget"
)

// Charge is the usage of an agent between two of its reports. The costs of all charges of a session add up to its usage
// (Within). The tokens of steps without reports are unknown.
type Charge struct {
	Time   time.Time
	Path   string // of the agent: that of its leaf, or of a subagent or reviewer inside the leaf
	Agent  string // may be empty if the step had no reports
	Model  string // may be empty
	Tokens budget.Tokens
	USD    float64 // negative if less was charged than computed before
}

// Charged makes u call charge with each charge of the events that it processes.
func (u *Usage) Charged(charge func(Charge)) { u.charge = charge }
