// Package trace describes which agents ran in a session, their parents, durations and
// results. It is pure: package session computes the entries from the session's events.
package trace

import (
	"slices"
	"time"
)

// Entry is one run of an agent, as in execution_trace of metadata.json.
type Entry struct {
	TraceID     string    `json:"trace_id"` // a UUID: a subagent has its own, other agents have the session's
	AgentName   string    `json:"agent_name"`
	ParentChain []string  `json:"parent_chain"` // user, ..., the agent itself
	SpawnedAt   time.Time `json:"spawned_at"`
	CompletedAt time.Time `json:"completed_at,omitzero"` // zero if it is running or if coven ended first
	DurationMS  int64     `json:"duration_ms"`
	Status      string    `json:"status"` // running, completed, failed, partial, cancelled or interrupted
	Error       string    `json:"error,omitempty"`

	ParentTraceID string `json:"parent_trace_id,omitempty"` // of the parent agent
	Path          string `json:"path,omitempty"`            // of its step
	Reviewer      string `json:"reviewer,omitempty"`        // the reviewer that uses the agent; empty if it does not review
	ID            string `json:"id,omitempty"`              // record ID of a subagent
	Model         string `json:"model,omitempty"`
	Tokens        int64  `json:"tokens"` // input and output, including cached tokens
}

// Failed reports whether the agent did not complete its task.
func (e Entry) Failed() bool {
	return e.Status == "failed" || e.Status == "cancelled" || e.Status == "interrupted" || e.Status == "partial"
}

// primary is the length of the parent chain of an agent without a parent agent: user and the agent.
const primary = 2

// Node is an agent with its child agents, in the order in which they started.
type Node struct {
	Entry
	Children []*Node
}

// Tree returns the agents without a parent, with their descendants.
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

// parent returns the node of an agent's parent, or nil. If the entry does not name
// its parent, it is the latest earlier node with the parent's chain.
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
