package event

import "strings"

// Spawn is the data of SpawnQueued: a subagent that may start. All its events have the same
// trace_id. The path of its own events is its caller's step followed by /spawn/ID.
type Spawn struct {
	ID          string   `json:"id"` // name of its record, unique in the session: code-reviewer-auth
	Agent       string   `json:"agent"`
	Task        string   `json:"task"`
	TaskID      string   `json:"task_id,omitempty"` // from the request
	Provider    string   `json:"provider"`
	Model       string   `json:"model"`
	ModelSource string   `json:"model_source"` // definition, default or override
	Depth       int      `json:"depth"`
	ParentChain []string `json:"parent_chain"` // user, ..., the agent itself
	// ParentTraceID is the trace ID of the agent that started it.
	ParentTraceID string   `json:"parent_trace_id,omitempty"`
	Permissions   []string `json:"permissions"` // permissions that it has at least partly
	Inherited     bool     `json:"inherited"`   // the request does not restrict permissions
	// Requested lists the permissions in the request.
	Requested []string `json:"requested,omitempty"`
	Queue     Queue    `json:"queue,omitzero"`
}

// Queue is the state of the queue of a session's subagents.
type Queue struct {
	Depth   int    `json:"depth"`             // number of waiting subagents
	Current string `json:"current,omitempty"` // the first running agent
}

// SpawnStart is the data of SpawnStarted. It is recorded before the process exists.
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
	Model   string      `json:"model,omitempty"` // model that answered
	Input   int64       `json:"input"`           // tokens, including cached ones
	Output  int64       `json:"output"`          // tokens
	CostUSD float64     `json:"cost_usd"`
	Turns   int         `json:"turns,omitempty"` // of the model

	// Attempt is the number of Report's attempt. It is 0 if the work was not evaluated.
	Attempt          int  `json:"attempt,omitempty"`
	ReflectionFailed bool `json:"reflection_failed,omitempty"` // no attempt passed
	// Kept is the reason why the worktree differs from the result of Attempt. It may be empty.
	Kept string `json:"kept,omitempty"`
}

// Attempt is the data of SpawnAttempted: the end of an attempt, before it is evaluated.
type Attempt struct {
	ID       string      `json:"id"`
	Attempt  int         `json:"attempt"` // 1, 2, 3, ...
	Report   string      `json:"report,omitempty"`
	Error    *SpawnError `json:"error,omitempty"`    // why there is no complete report
	Snapshot *Snapshot   `json:"snapshot,omitempty"` // of the worktree after the attempt; nil if the agent may not write
}

// Evaluation is the data of SpawnEvaluated.
type Evaluation struct {
	ID       string  `json:"id"`
	Attempt  int     `json:"attempt"`
	Passed   bool    `json:"passed"`
	Score    float64 `json:"score"` // 0 to 10
	Critique string  `json:"critique"`
	Error    string  `json:"error,omitempty"` // why it was not evaluated; it counts as failed with score 0 then
}

// SpawnError is the error of a failed subagent.
type SpawnError struct {
	Type    ErrorType `json:"type"`
	Message string    `json:"message"`
	Stack   string    `json:"stack,omitempty"`
}

// SpawnRefusal is the data of SpawnRejected: a rejected request for a subagent.
type SpawnRefusal struct {
	Agent       string   `json:"agent"`
	Task        string   `json:"task"`
	Permission  string   `json:"permission,omitempty"` // the permission that the caller lacks
	Reason      string   `json:"reason"`
	ParentChain []string `json:"parent_chain"` // of the caller
}

// spawnPath separates the path of a step and the ID of a subagent.
const spawnPath = "/spawn/"

// IsSpawned reports whether a path is the path of a subagent.
func IsSpawned(path string) bool { return strings.HasPrefix(path[len(LeafOf(path)):], spawnPath) }

// SpawnPath returns the path of a subagent that the agent of a step starts.
func SpawnPath(step, id string) string { return LeafOf(step) + spawnPath + id }
