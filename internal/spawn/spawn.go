// Package spawn decides which agents an agent may start, queues them, and writes down what
// came of them.
//
// Rules. Who asks is coven's own record of the calling process (Caller), never what a request
// says. A subagent may do no more than every agent above it, and is never deeper than
// MaxDepth allows. The subagents of a session start in the order of the requests, one at a time
// unless the configuration says otherwise, and their results are returned in that order. One
// that fails or panics does not stop the queue.
//
// The package starts nothing itself: its caller runs the Child that Admit returns.
package spawn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/didyoumean"
	"github.com/coven-run/coven/internal/permission"
)

// MaxDepth is the number of levels of agents. The agent that a person starts is at depth 0.
const MaxDepth = 2

const (
	maxTask  = 256 << 10 // bytes of the text of a task
	maxName  = 256       // bytes of any other text of a request
	maxNames = 100       // permissions of a request
)

// User is the name of a person in chains, and of the caller of coven spawn.
const User = "user"

// Request asks for a subagent. It has no field for context: a subagent knows its prompt and its
// task, and nothing of the conversation of its caller.
type Request struct {
	Agent string `json:"agent"`
	Task  string `json:"task"`
	// Permissions restricts the subagent to these permissions and the baseline; nil: to those
	// of its definition and its caller.
	Permissions *[]string `json:"permissions,omitempty"`
	Model       string    `json:"model,omitempty"`   // empty: that of the definition
	TaskID      string    `json:"task_id,omitempty"` // a short name for the record; empty: from the task
}

// Caller is coven's record of the agent that asks.
type Caller struct {
	Agent  string
	Depth  int
	Chain  []string // who started whom: user, ..., the agent itself
	Policy *permission.Policy
	Path   string // of the step in which it runs
	Trace  string // its trace id
	Model  string // that it was started with
}

// Definition is what Admit needs of the definition of an agent: see package agent.
type Definition struct {
	Model       string
	Mode        string // primary, subagent or empty
	Permissions []permission.Rule
	Asks        []permission.Name
}

// The places where the model of a subagent can come from.
const (
	ModelOfDefinition = "definition"
	ModelOfDefault    = "default"
	ModelOfRequest    = "override"
)

// Child is a subagent that may start.
type Child struct {
	Agent, Task        string
	Model, ModelSource string
	Depth              int
	Chain              []string // ends with Agent
	Policy             *permission.Policy
	Permissions        []permission.Name // all that it may do, at least in part
	Inherited          bool              // the request named no permissions
}

// Admission is what the requests of a session are judged by.
type Admission struct {
	MaxDepth     int
	DefaultModel string
	Rules        []permission.Rule // of the user, for all agents
	KnowsModel   func(model string) error
	Find         func(agent string) (Definition, error)
}

// Descend returns a *DepthError if an agent at this depth may start none.
func (a Admission) Descend(depth int) error {
	if depth+1 >= a.MaxDepth {
		return &DepthError{Max: a.MaxDepth}
	}
	return nil
}

// Admit returns the subagent that a request asks for, or the reason for refusing it:
// *DepthError, *EscalationError, or another error that says what is wrong with the request.
func (a Admission) Admit(c Caller, r Request) (Child, error) {
	if err := a.Descend(c.Depth); err != nil {
		return Child{}, err
	}
	if err := r.fits(); err != nil {
		return Child{}, err
	}
	if err := c.mayStart(r.Agent); err != nil {
		return Child{}, err
	}
	if strings.TrimSpace(r.Task) == "" {
		return Child{}, fmt.Errorf("the task for agent '%s' is empty", r.Agent)
	}
	if len(r.Task) > maxTask {
		return Child{}, fmt.Errorf("the task for agent '%s' has %d bytes, the maximum is %d: put the text into a file and name it", r.Agent, len(r.Task), maxTask)
	}
	d, err := a.Find(r.Agent)
	if err != nil {
		return Child{}, err
	}
	if d.Mode == "primary" {
		return Child{}, fmt.Errorf("agent '%s' has mode primary and cannot be started by another agent", r.Agent)
	}
	limit, err := limitOf(c.Policy, r.Permissions)
	if err != nil {
		return Child{}, err
	}
	child := Child{
		Agent: r.Agent, Task: r.Task, Depth: c.Depth + 1, Chain: append(slices.Clone(c.Chain), r.Agent),
		Policy:    permission.OfSubagent(c.Policy, r.Agent, d.Permissions, d.Asks, a.Rules, limit),
		Inherited: r.Permissions == nil,
	}
	child.Permissions = child.Policy.Grants()
	child.Model, child.ModelSource, err = a.model(d, r)
	return child, err
}

// fits returns an error if a part of the request is longer than a name can be: what a request says
// goes into the record, also when it is refused.
func (r Request) fits() error {
	parts := map[string]string{"the name of the agent": r.Agent, "model": r.Model, "task_id": r.TaskID}
	if r.Permissions != nil {
		if len(*r.Permissions) > maxNames {
			return fmt.Errorf("permissions has %d elements, the maximum is %d", len(*r.Permissions), maxNames)
		}
		parts["a permission"] = slices.MaxFunc(append(slices.Clone(*r.Permissions), ""), func(a, b string) int { return len(a) - len(b) })
	}
	for _, what := range slices.Sorted(maps.Keys(parts)) {
		if n := len(parts[what]); n > maxName {
			return fmt.Errorf("%s has %d bytes, the maximum is %d", what, n, maxName)
		}
	}
	return nil
}

// mayStart returns why the caller may not start an agent, also if the request did not pass the gate:
// coven spawn in an agent's shell does not. What a person would be asked about, a person may do.
func (c Caller) mayStart(agent string) error {
	if !slices.Contains(c.Policy.Grants(), permission.AgentSpawn) {
		return fmt.Errorf("agent '%s' may not start agents: it lacks the permission %s", c.Agent, permission.AgentSpawn)
	}
	d := c.Policy.Decide(permission.Request{Permission: permission.AgentSpawn, Subject: agent})
	if d.Allowed() || d.Action == permission.Ask && len(c.Chain) == 1 {
		return nil
	}
	return fmt.Errorf("agent '%s' may not start agent '%s': %s", c.Agent, agent, d.Reason)
}

func (a Admission) model(d Definition, r Request) (model, source string, err error) {
	switch {
	case r.Model != "":
		return r.Model, ModelOfRequest, a.KnowsModel(r.Model)
	case d.Model != "":
		return d.Model, ModelOfDefinition, nil
	}
	return a.DefaultModel, ModelOfDefault, nil
}

// limitOf returns the permissions that a request restricts a subagent to; nil: it does not.
func limitOf(parent *permission.Policy, words *[]string) ([]permission.Name, error) {
	if words == nil {
		return nil, nil
	}
	limit := []permission.Name{}
	has := parent.Grants()
	for _, word := range *words {
		names, ok := permission.Expand(word)
		if !ok {
			return nil, fmt.Errorf("invalid permission '%s'%s", word, didyoumean.Aside(word, permission.Words()))
		}
		for _, name := range names {
			if !slices.Contains(has, name) {
				return nil, &EscalationError{Word: word, Parent: has}
			}
		}
		limit = append(limit, names...)
	}
	return limit, nil
}

// DepthError means that an agent is too deep to start another.
type DepthError struct{ Max int }

func (e *DepthError) Error() string {
	return fmt.Sprintf("Maximum agent depth (%d) exceeded. Subagents cannot spawn their own subagents.", e.Max)
}

// NextCommand returns the command that shows who may start whom.
func (e *DepthError) NextCommand() string { return "coven agents list" }

// EscalationError means that a request asks for a permission that the caller lacks.
type EscalationError struct {
	Word   string // as in the request
	Parent []permission.Name
}

func (e *EscalationError) Error() string {
	return fmt.Sprintf("Subagent requested %s but parent doesn't have it (parent has: %s)", e.Word, permission.Join(e.Parent))
}

// NextCommand returns the command that shows what agents may do.
func (e *EscalationError) NextCommand() string { return "coven agents list" }
