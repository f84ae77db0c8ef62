// Package trace describes which agents ran in a session, who started whom, how long each took, and
// what became of it. It is pure: package session computes the entries from the events of a session.
package trace

import (
	"slices"
	"time"
)

// Entry is one run of an agent, as in execution_trace of metadata.json.
type Entry struct {
	TraceID     string    `json:"trace_id"` // a UUID: of a subagent its own, else that of the session
	AgentName   string    `json:"agent_name"`
	ParentChain []string  `json:"parent_chain"` // user, ..., the agent itself
	SpawnedAt   time.Time `json:"spawned_at"`
	CompletedAt time.Time `json:"completed_at,omitzero"` // zero: it runs, or coven ended first
	DurationMS  int64     `json:"duration_ms"`
	Status      string    `json:"status"` // running, completed, failed, partial, cancelled or interrupted
	Error       string    `json:"error,omitempty"`

	ParentTraceID string `json:"parent_trace_id,omitempty"` // of the agent that started it
	Path          string `json:"path,omitempty"`            // of the step that it worked for
	Reviewer      string `json:"reviewer,omitempty"`        // that asked it; empty: it does not review
	ID            string `json:"id,omitempty"`              // of the record of a subagent
	Model         string `json:"model,omitempty"`
	Tokens        int64  `json:"tokens"` // input and output, with those of the cache
}

// Failed reports whether the agent did not do what it was asked for.
func (e Entry) Failed() bool {
	return e.Status == "failed" || e.Status == "cancelled" || e.Status == "interrupted" || e.Status == "partial"
}

// primary is the depth of chains of the agents that a person starts: user and the agent.
const primary = 2

// Node is an agent with those that it started, in the order in which they started.
type Node struct {
	Entry
	Children []*Node
}

// Tree returns the agents that no other agent started, with those below them.
func Tree(entries []Entry) []*Node {
	var roots, all []*Node
	for _, e := range entries {
		n := &Node{Entry: e}
		if p := parent(all, e); p != nil {
			p.Children = append(p.Children, n)
		} else {
			roots = append(roots, n)
		}
		all = append(all, n)
	}
	return roots
}

// parent returns the node of the agent that started another, or nil. An
// entry need not name it: then it is the last one before with the chain above.
func parent(before []*Node, e Entry) *Node {
	for _, p := range slices.Backward(before) {
		isAbove := len(p.ParentChain) > 0 && len(p.ParentChain)+1 == len(e.ParentChain) && slices.Equal(p.ParentChain, e.ParentChain[:len(p.ParentChain)])
		if !isAbove {
			continue
		}
		if e.ParentTraceID == "" || p.TraceID == e.ParentTraceID && (len(p.ParentChain) > primary || p.Path == "" || e.Path == "" || p.Path == e.Path) {
			return p
		}
	}
	return nil
}
