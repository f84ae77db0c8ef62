package runner

import (
	"context"
	"fmt"
	"strings"
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

// Call asks for the work of one leaf: plain data. Exactly one of Agent, Script
// and Merge is set.
type Call struct {
	Path   string       `json:"path"` // step path with attempt: tests[2]/fix#1
	Step   string       `json:"step"` // the step's name
	Agent  *AgentInput  `json:"agent,omitempty"`
	Script *ScriptInput `json:"script,omitempty"`
	Merge  *MergeInput  `json:"merge,omitempty"`
	// Tolerated says that the run goes on when the leaf fails.
	Tolerated bool `json:"tolerated,omitempty"`
}

// Kind is the type of the step, as grimoires name it.
func (c Call) Kind() string {
	switch {
	case c.Agent != nil:
		return "agent"
	case c.Script != nil:
		return "script"
	default:
		return "merge"
	}
}

// place is where in the tree a step stands: its path grows with each loop.
type place []string

func (p place) iteration(loop string, n int) place {
	return append(p[:len(p):len(p)], fmt.Sprintf("%s[%d]", loop, n))
}

// leaf returns the path of one attempt of a leaf.
func (p place) leaf(name string, attempt int) string {
	return strings.Join(append(p[:len(p):len(p)], fmt.Sprintf("%s#%d", name, attempt)), "/")
}
