// Package engine runs the steps of a grimoire: it builds a tree of steps from a plan, passes results from
// step to step, and replays recorded results.
//
// Rules. Build is the only place where data becomes steps. Control flow (when, retry, timeout, budget,
// on_fail) is implemented by decorators, which are steps that wrap a step. The tree is pure: its only
// inputs are the plan and the results of leaves, so the same results always lead to the same path. It does
// not access clocks, files, processes or git: leaves do that behind Leaves, and a Clock measures working
// time. Each result is recorded before a later step reads it. Therefore a run is resumed by running the
// tree again: Replay returns recorded results, and the first leaf without a result continues. A failed step
// is an Outcome; an error means that the machinery is broken or that the run has to wait.
package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Step is a node of the tree. It reads only its state.
type Step interface {
	Run(ctx context.Context, s *State) (Outcome, error)
}

// Leaves does the work of the tree's leaves: everything that needs a clock, a file, a process or git.
type Leaves interface {
	Do(ctx context.Context, call Call) (event.Result, error)
}

// Call is a request for the work of one leaf. It is plain data. Exactly one of Agent, Script, Review,
// Arbiter, Merge, Pause and Setup is set.
type Call struct {
	Path    string        `json:"path"` // step path with attempt: tests[2]/fix#1
	Step    string        `json:"step"` // name of the step; for a leaf of an agent-loop, for example quality/review
	Agent   *AgentInput   `json:"agent,omitempty"`
	Script  *ScriptInput  `json:"script,omitempty"`
	Review  *ReviewInput  `json:"review,omitempty"`
	Arbiter *ArbiterInput `json:"arbiter,omitempty"`
	Merge   *MergeInput   `json:"merge,omitempty"`
	Pause   *PauseInput   `json:"pause,omitempty"`
	Setup   *SetupInput   `json:"setup,omitempty"`
	// Tolerated means that the run continues if the leaf fails.
	Tolerated bool `json:"tolerated,omitempty"`
	// Budgets are the budgets of the steps around the leaf. They are not part of its input, because a user
	// may raise them while the session waits.
	Budgets []StepBudget `json:"-"`
}

// PauseInput is the input of a leaf that only waits.
type PauseInput struct {
	For time.Duration `json:"for_ns"`
}

// SetupInput is the input of the leaf that prepares a new worktree. The leaf is not part of the tree: a
// session runs it before the tree, once for each new worktree.
type SetupInput struct {
	Commands []string      `json:"commands"` // for sh -c, in order
	Timeout  time.Duration `json:"timeout_ns"`
}

// Kind returns the kind of the leaf. For a step, it is the type in the grimoire.
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
	case c.Setup != nil:
		return "setup"
	default:
		return "merge"
	}
}

// place is the path of the loops around a step, with one element for each loop.
type place []string

// iteration returns the place of the steps inside an iteration of a loop.
func (p place) iteration(loop string, n int) place {
	return append(p[:len(p):len(p)], fmt.Sprintf("%s[%d]", loop, n))
}

// of returns the path of a step at this place.
func (p place) of(name string) string { return strings.Join(append(p[:len(p):len(p)], name), "/") }

// leaf returns the path of one attempt of a leaf at this place.
func (p place) leaf(name string, attempt int) string {
	return p.of(fmt.Sprintf("%s#%d", name, attempt))
}

// Clock measures the working time of steps and leaves, because the engine must not read a clock. If a
// function is nil, no time passes.
type Clock struct {
	// Limit returns a context that ends with cause after the working time limit.
	Limit func(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc)
	// Measure returns a context whose working time is measured. worked ends the measurement and returns the
	// time.
	Measure func(ctx context.Context) (_ context.Context, worked func() time.Duration)
	// Charge subtracts the working time of an earlier process from the limits of a context.
	Charge func(ctx context.Context, worked time.Duration)
}

func (c Clock) limit(ctx context.Context, limit time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c.Limit == nil {
		return context.WithCancel(ctx)
	}
	return c.Limit(ctx, limit, cause)
}

func (c Clock) measure(ctx context.Context) (_ context.Context, worked func() time.Duration) {
	if c.Measure == nil {
		return ctx, func() time.Duration { return 0 }
	}
	return c.Measure(ctx)
}

func (c Clock) charge(ctx context.Context, worked time.Duration) {
	if c.Charge != nil {
		c.Charge(ctx, worked)
	}
}
