package event

import "strings"

// Spawn is the data of SpawnQueued: a subagent that may start. All events about it have its
// trace_id, and its own events the path of its caller's step with /spawn/ID appended.
type Spawn struct {
	ID          string   `json:"id"` // its record's name, unique in the session: code-reviewer-auth
	Agent       string   `json:"agent"`
	Task        string   `json:"task"`
	TaskID      string   `json:"task_id,omitempty"` // as in the request
	Provider    string   `json:"provider"`
	Model       string   `json:"model"`
	ModelSource string   `json:"model_source"` // definition, default or override
	Depth       int      `json:"depth"`
	ParentChain []string `json:"parent_chain"` // user, ..., the agent itself
	// ParentTraceID is the trace id of the agent that asked.
	ParentTraceID string   `json:"parent_trace_id,omitempty"`
	Permissions   []string `json:"permissions"` // all that it may do, at least in part
	Inherited     bool     `json:"inherited"`   // the request named no permissions
	// Requested has the permissions of the request.
	Requested []string `json:"requested,omitempty"`
	Queue     Queue    `json:"queue,omitzero"`
}

// Queue is the state of the queue of a session's subagents.
type Queue struct {
	Depth   int    `json:"depth"`             // that wait
	Current string `json:"current,omitempty"` // the agent that runs; of several, the first
}

// SpawnStart is the data of SpawnStarted: before the process exists.
type SpawnStart struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Queue Queue  `json:"queue"`
}

// SpawnEnd is the data of SpawnEnded.
type SpawnEnd struct {
	ID      string      `json:"id"`
	Agent   string      `json:"agent"`
	Status  Status      `json:"status"` // completed, partial, failed, cancelled or interrupted
	Summary string      `json:"summary,omitempty"`
	Report  string      `json:"report,omitempty"` // its last message
	Error   *SpawnError `json:"error,omitempty"`
	Model   string      `json:"model,omitempty"` // that answered
	Input   int64       `json:"input"`           // tokens, with those of the cache
	Output  int64       `json:"output"`          // tokens
	CostUSD float64     `json:"cost_usd"`
	Turns   int         `json:"turns,omitempty"` // of the model

	// Attempt is the number of the attempt that Report is of; 0: the work was not evaluated.
	Attempt          int  `json:"attempt,omitempty"`
	ReflectionFailed bool `json:"reflection_failed,omitempty"` // no attempt passed
	// Kept says why the worktree is not as Attempt left it.
	Kept string `json:"kept,omitempty"`
}

// Attempt is the data of SpawnAttempted: the end of an attempt, before it is evaluated.
type Attempt struct {
	ID       string      `json:"id"`
	Attempt  int         `json:"attempt"` // 1, 2, 3, ...
	Report   string      `json:"report,omitempty"`
	Error    *SpawnError `json:"error,omitempty"`    // why there is no report, or no complete one
	Snapshot *Snapshot   `json:"snapshot,omitempty"` // of the worktree after it; nil: the agent may not write
}

// Evaluation is the data of SpawnEvaluated.
type Evaluation struct {
	ID       string  `json:"id"`
	Attempt  int     `json:"attempt"`
	Passed   bool    `json:"passed"`
	Score    float64 `json:"score"` // 0 to 10
	Critique string  `json:"critique"`
	Error    string  `json:"error,omitempty"` // why there is no verdict: then it is not passed, with the score 0
}

// SpawnError is why a subagent failed.
type SpawnError struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	Stack   string    `json:"stack,omitempty"`
}

// SpawnRefusal is the data of SpawnRejected: a request that started nothing.
type SpawnRefusal struct {
	Agent       string   `json:"agent"`
	Task        string   `json:"task"`
	Permission  string   `json:"permission,omitempty"` // that the caller lacks
	Reason      string   `json:"reason"`
	ParentChain []string `json:"parent_chain"` // of the caller
}

// spawnPath is between the path of a step and the ID of a subagent.
const spawnPath = "/spawn/"

// IsSpawned reports whether a path is that of a subagent.
func IsSpawned(path string) bool { return strings.HasPrefix(path[len(LeafOf(path)):], spawnPath) }

// SpawnPath returns the path of a subagent that an agent of a step starts.
func SpawnPath(step, id string) string { return LeafOf(step) + spawnPath + id }
