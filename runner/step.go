package runner

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Step is one node of a planned grimoire. It reads nothing but its state: the
// same results take it the same way.
type Step interface {
	Run(ctx context.Context, s *State) (Outcome, error)
}

// Leaves does the work of the tree's leaves. Everything that reads a clock, a
// file, a process or git is behind it.
type Leaves interface {
	Do(ctx context.Context, call Call) (Result, error)
}

// Call asks for the work of one leaf: plain data. Exactly one of Agent, Script,
// Review, Arbiter, Merge and Pause is set.
type Call struct {
	Path    string        `json:"path"` // step path with attempt: tests[2]/fix#1
	Step    string        `json:"step"` // the step's name; of a leaf of an agent-loop quality/review
	Agent   *AgentInput   `json:"agent,omitempty"`
	Script  *ScriptInput  `json:"script,omitempty"`
	Review  *ReviewInput  `json:"review,omitempty"`
	Arbiter *ArbiterInput `json:"arbiter,omitempty"`
	Merge   *MergeInput   `json:"merge,omitempty"`
	Pause   *PauseInput   `json:"pause,omitempty"`
	// Tolerated says that the run goes on when the leaf fails.
	Tolerated bool `json:"tolerated,omitempty"`
	// Budgets are those that hold for the leaf. They are no part of what it is
	// asked: a person may raise them while the session waits.
	Budgets []StepBudget `json:"-"`
}

// PauseInput is what a leaf is given that only lets time pass.
type PauseInput struct {
	For time.Duration `json:"for_ns"`
}

// Kind is the type of the step, as grimoires name it.
func (c Call) Kind() string {
	switch {
	case c.Agent != nil:
		return "agent"
	case c.Script != nil:
		return "script"
	case c.Review != nil:
		return "review"
	case c.Arbiter != nil:
		return "arbiter"
	case c.Pause != nil:
		return "pause"
	default:
		return "merge"
	}
}

// place is where in the tree a step stands: its path grows with each loop.
type place []string

// iteration is the place of the steps inside a loop.
func (p place) iteration(loop string, n int) place {
	return append(p[:len(p):len(p)], fmt.Sprintf("%s[%d]", loop, n))
}

// of returns the path of a step here.
func (p place) of(name string) string { return strings.Join(append(p[:len(p):len(p)], name), "/") }

// leaf returns the path of one attempt of a leaf.
func (p place) leaf(name string, attempt int) string {
	return p.of(fmt.Sprintf("%s#%d", name, attempt))
}
