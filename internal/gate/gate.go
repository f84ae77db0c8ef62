// Package gate decides about every tool call of an agent. It checks the permission and
// saves the worktree before it allows a call.
//
// Rules. A call that cannot be parsed is denied. A call that may change files is
// allowed only after the worktree was saved. Every decision is an event, which is
// durable before the agent gets the answer. Calls are decided one at a time, in the
// order in which they arrive; while a person is asked about one, the later ones of the agent wait.
// What no rule allows and none denies runs only with a person's approval, and a modification of it by
// this person only if nothing denies the modified call.
package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
)

// Call is a tool call.
type Call struct {
	ID    string          // the agent CLI's ID of the call
	Tool  string          // as the agent CLI names it: Write
	Input json.RawMessage // the tool's arguments
}

// Verdict is the gate's answer.
type Verdict struct {
	Allow   bool
	Message string          // for the agent, when not allowed
	Input   json.RawMessage // with which the call runs, if a person modified it
}

// A Change is what a call may do to a worktree.
type Change struct {
	Call string // the call's ID
	Path string // of the only file that it may change, absolute; empty: any file
	Note string // describes the call
}

// workspace saves a worktree before each call that may change it, and is told when the call is
// over.
type workspace interface {
	BeforeCall(ctx context.Context, c Change) (event.Snapshot, error)
	AfterCall(id string)
}

// Gate decides about the calls of one agent in one worktree.
type Gate struct {
	policy    *permission.Policy
	workspace workspace
	emit      func(t event.Type, data any) error
	descend   func() error // why the agent may start no other; nil: it may, if it is permitted
	asker     asker        // nil: what needs a person's answer is denied
	check     func(Call) error
	lacks     func(Call) error  // why the agent has no such tool; nil: it has those that it calls
	servers   map[string]string // server/tool, by the name of a tool of an MCP server
	commands  func(Call) (string, error)

	deciding sync.Mutex // held while a call is decided

	mu      sync.Mutex
	decided map[string]bool // by id: whether the call was allowed
	running map[string]bool // by id: whether the call outlasts its result
	granted map[string]int  // calls of command tools and MCP servers that were allowed and have not begun
}

// New returns the gate of an agent. emit makes an event durable.
func New(policy *permission.Policy, w workspace, emit func(event.Type, any) error) *Gate {
	return &Gate{policy: policy, workspace: w, emit: emit, decided: map[string]bool{}, running: map[string]bool{}, granted: map[string]int{}}
}

// Descend sets the func that returns why the agent is too deep to start another, or nil.
func (g *Gate) Descend(check func() error) { g.descend = check }

// Serves names the tools of MCP servers that the agent has: server/tool, by the name with which it calls one.
func (g *Gate) Serves(tools map[string]string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.servers = tools
}

// served returns server/tool of a tool of an MCP server; empty: it is none.
func (g *Gate) served(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.servers[name]
}

// Lacks sets the func that returns why the agent has no tool of the name that it calls, or nil.
func (g *Gate) Lacks(why func(Call) error) { g.lacks = why }

// Commands sets the func that returns the shell command that a call of a command tool is judged as;
// empty: the call is of another tool.
func (g *Gate) Commands(of func(Call) (string, error)) { g.commands = of }

// Decide decides about a call. It denies the call if the gate itself fails.
func (g *Gate) Decide(ctx context.Context, call Call) Verdict {
	g.deciding.Lock()
	defer g.deciding.Unlock()
	now, about, d, record := g.judge(ctx, call)
	if err := g.emit(event.GateDecided, record); err != nil {
		return Verdict{Message: "coven could not record the call, so it is refused: " + err.Error()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decided[call.ID] = d.Allowed()
	if !d.Allowed() {
		return Verdict{Message: "coven refused " + call.Tool + ": " + d.Reason}
	}
	g.grant(now, about)
	if !bytes.Equal(now.Input, call.Input) {
		return Verdict{Allow: true, Input: now.Input}
	}
	return Verdict{Allow: true}
}

// grant notes that a call of a command tool, or of a tool of an MCP server, was allowed.
func (g *Gate) grant(call Call, about subject) {
	if about.permission == permission.MCPCall {
		g.granted[key(call, about.other)]++
		return
	}
	if g.commands != nil {
		if command, err := g.commands(call); command != "" && err == nil {
			g.granted[key(call, "")]++
		}
	}
}

// Redeem reports whether the gate allowed a call of a command tool or of an MCP server that has not begun yet, and begins it:
// a program of the agent could call the tool without asking. of is server/tool; empty: it is a command tool. What a
// name stands for may have changed since.
func (g *Gate) Redeem(call Call, of string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted[key(call, of)] == 0 {
		return false
	}
	g.granted[key(call, of)]--
	return true
}

// key returns what identifies a call of a command tool, or of a server/tool, for the agent CLI and for the tool.
func key(call Call, of string) string {
	name := of + " " + ToolName(call)
	var value any
	decoder := json.NewDecoder(bytes.NewReader(call.Input))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return name
	}
	text, err := json.Marshal(value)
	if err != nil {
		return name
	}
	return name + " " + string(text)
}

// Decided reports whether the gate was asked about the call.
func (g *Gate) Decided(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, decided := g.decided[id]
	return decided
}

// Refused reports whether the gate was asked about the call and refused it.
func (g *Gate) Refused(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	allowed, decided := g.decided[id]
	return decided && !allowed
}

// Ended tells the gate that the result of a call is known.
func (g *Gate) Ended(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if outlasts, running := g.running[id]; running && !outlasts {
		delete(g.running, id)
		g.workspace.AfterCall(id)
	}
}

// Close ends all calls: the agent and its processes are gone.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.running {
		g.workspace.AfterCall(id)
	}
	clear(g.running)
}

// judge decides about a call, and saves the worktree if the call may change files. It returns the
// call as it may run, and what it is about.
func (g *Gate) judge(ctx context.Context, call Call) (Call, subject, permission.Decision, event.Decision) {
	s := g.describe(call)
	if g.lacks != nil && s.err == nil {
		s.err = g.lacks(call)
	}
	place, d := g.permit(s)
	if d.Action == permission.Ask {
		call, s, place, d = g.ask(ctx, call, s, place, d)
	}
	record := event.Decision{ID: clip(call.ID, maxSubject), Tool: clip(call.Tool, maxSubject), Permission: string(s.permission), Subject: s.text()}
	if d.Allowed() && s.changes() {
		snapshot, err := g.workspace.BeforeCall(ctx, Change{Call: call.ID, Path: place, Note: "before " + Summary(call, g.policy.Root)})
		switch {
		case err == nil:
			g.begin(call.ID, s.lingers)
		case err != nil && ctx.Err() != nil:
			d = refused("the agent was stopped")
		case err != nil:
			d = refused(fmt.Sprintf("the worktree could not be saved first: %v", err))
		}
		record.Snapshot = snapshot.N
	}
	record.Allowed, record.Reason = d.Allowed(), clip(d.Reason, maxReason)
	return call, s, d, record
}

// begin notes that a call that may change files begins.
func (g *Gate) begin(id string, lingers bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[id] = lingers
}

// permit decides whether a call is allowed. It returns the file that the call names, if any, with
// links resolved.
func (g *Gate) permit(s subject) (place string, d permission.Decision) {
	if s.err != nil {
		return "", refused(s.err.Error())
	}
	if why := free(s.permission); why != "" {
		return "", permission.Decision{Action: permission.Allow, Reason: why}
	}
	if s.permission == permission.AgentSpawn && g.descend != nil {
		if err := g.descend(); err != nil {
			return "", refused(err.Error())
		}
	}
	req := permission.Request{Permission: s.permission, Command: s.command, Subject: s.other}
	if s.path != "" {
		place, err := permission.Resolve(g.policy.Root, s.path)
		if err != nil {
			return "", refused(err.Error())
		}
		req.Path = place
	}
	return req.Path, g.policy.Decide(req)
}

func refused(why string) permission.Decision {
	return permission.Decision{Action: permission.Deny, Reason: why}
}
