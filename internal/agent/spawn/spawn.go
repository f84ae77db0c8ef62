// Package spawn decides which agents an agent may start, queues them, and formats their
// records.
//
// The caller of a request is identified by coven's own record of the process (Caller), never by the
// request. A subagent has no more rights than each of its ancestors, and its depth is limited by
// MaxDepth. The subagents of a session start in the order of the requests, one at a time
// by default, and their results are returned in the same order. A subagent
// that fails or panics does not stop the queue.
//
// The package starts nothing itself: its caller runs the Child that Admit returns.
package spawn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// MaxDepth is the number of levels of agents. An agent that a person starts has depth 0.
const MaxDepth = 2

const (
	maxTask  = 256 << 10 // bytes of the text of a task
	maxName  = 256       // bytes of any other string in a request
	maxNames = 100       // permissions in a request
)

// User is the name of a person in chains and as the caller of coven spawn.
const User = "user"

// Request is a request for a subagent. It has no field for context: a subagent gets its prompt and its
// task, but nothing of its caller's conversation.
type Request struct {
	Agent string `json:"agent"`
	Task  string `json:"task"`
	// Permissions restricts the subagent to these permissions and the baseline. If it is nil, the subagent
	// has the permissions of its definition and its caller.
	Permissions *[]string `json:"permissions,omitempty"`
	Model       string    `json:"model,omitempty"`   // defaults to the definition's
	TaskID      string    `json:"task_id,omitempty"` // a short name for the record; derived from the task by default
}

// Caller is coven's record of the calling agent.
type Caller struct {
	Agent  string
	Depth  int
	Chain  []string // user, ..., the agent itself
	Policy *permission.Policy
	Path   string // of the step in which it runs
	Trace  string // trace ID
	Model  string // the model with which it was started
}

// Definition is the part of an agent's definition that Admit needs; see package agent.
type Definition struct {
	Model       string
	Mode        string // primary, subagent or empty
	Permissions []permission.Rule
	Asks        []permission.Name
}

// Sources of a subagent's model.
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
	Permissions        []permission.Name // permissions that it has at least partly
	Inherited          bool              // the request does not restrict permissions
}

// Admission holds the rules for the requests of a session.
type Admission struct {
	MaxDepth     int
	DefaultModel string
	Rules        []permission.Rule // of the user, for all agents
	KnowsModel   func(model string) error
	Find         func(agent string) (Definition, error)
}

// Descend returns a *DepthError if an agent at the depth may not start others.
func (a Admission) Descend(depth int) error {
	if depth+1 >= a.MaxDepth {
		return &DepthError{Max: a.MaxDepth}
	}
	return nil
}

// Admit returns the requested subagent, or the reason for refusing the request:
// *DepthError, *EscalationError, or another error about the request.
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

// fits returns an error if a string in the request is too long, because even refused requests
// are recorded.
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

// mayStart returns an error if the caller may not start an agent. It is also needed for requests that did not
// pass the gate, such as coven spawn in an agent's shell. A person needs no approval.
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

// limitOf returns the permissions to which a request restricts a subagent, or nil if it does not.
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

// DepthError means that an agent is too deep to start another one.
type DepthError struct{ Max int }

func (e *DepthError) Error() string {
	return fmt.Sprintf("Maximum agent depth (%d) exceeded. Subagents cannot spawn their own subagents.", e.Max)
}

// NextCommand returns the command that shows which agents may start others.
func (e *DepthError) NextCommand() string { return "coven agents list" }

// EscalationError means that a request contains a permission that the caller lacks.
type EscalationError struct {
	Word   string // as in the request
	Parent []permission.Name
}

func (e *EscalationError) Error() string {
	return fmt.Sprintf("Subagent requested %s but parent doesn't have it (parent has: %s)", e.Word, permission.Join(e.Parent))
}

// NextCommand returns the command that shows the permissions of agents.
func (e *EscalationError) NextCommand() string { return "coven agents list" }
