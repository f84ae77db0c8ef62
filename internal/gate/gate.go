// Package gate decides about every tool call of an agent. It checks the permission and
// saves the worktree before it allows a call.
//
// A call that cannot be parsed is denied. A call that may change files is
// allowed only after the worktree was saved. Every decision is an event, which is
// durable before the agent gets the answer. Calls are decided one at a time, in the
// order of their arrival; while a person is asked about a call, the agent's later calls wait.
// A call that no rule allows or denies needs a person's approval. If the person modifies the call, it runs
// only if no rule denies the modified call.
package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/strictjson"
)

// Call is a tool call.
type Call struct {
	ID    string          // the agent CLI's ID of the call
	Tool  string          // the agent CLI's name of the tool, such as Write
	Input json.RawMessage // the tool's arguments
}

// Verdict is the gate's decision.
type Verdict struct {
	Allow   bool
	Message string          // for the agent, when not allowed
	Input   json.RawMessage // the input to use if a person modified it, else nil
}

// A Change describes a call that may change a worktree.
type Change struct {
	Call string // the call's ID
	Path string // absolute path of the only file that it may change; empty for any file
	Note string // describes the call
}

// workspace saves a worktree before each call that may change it, and is notified when the call has
// ended.
type workspace interface {
	BeforeCall(ctx context.Context, c Change) (event.Snapshot, error)
	AfterCall(id string)
}

// Options configures a gate. Only the first three fields are required.
type Options struct {
	Policy    *permission.Policy
	Workspace workspace
	// Emit makes an event durable.
	Emit func(t event.Type, data any) error

	// Asker asks a person about calls for which a rule requires it. Without one, these calls are denied.
	Asker asker
	// Lacks returns an error if the agent does not have the tool of a call.
	Lacks func(Call) error
	// Descend returns an error if the agent is too deep to start another.
	Descend func() error
	// Command returns the shell command that a call of a command tool runs, or "" for a call of another tool.
	Command func(Call) (string, error)
	// Server returns SERVER/TOOL for the name of a tool of an MCP server, or "" for another tool.
	Server func(name string) string
	// Check returns an error if a call that a person modified does not fit its tool. Without it, the
	// arguments must keep their names and types.
	Check func(Call) error
}

// Gate decides about the calls of one agent in one worktree.
type Gate struct {
	options Options

	deciding sync.Mutex // held while deciding about a call

	mu      sync.Mutex
	decided map[string]bool // by call ID: whether the call was allowed
	running map[string]bool // by call ID: whether the call outlasts its result
	granted map[string]int  // number of allowed calls of command tools and MCP servers that have not started
}

// New returns the gate of an agent.
func New(o Options) *Gate {
	return &Gate{options: o, decided: map[string]bool{}, running: map[string]bool{}, granted: map[string]int{}}
}

// Decide decides about a call. It denies the call if the gate itself fails.
func (g *Gate) Decide(ctx context.Context, call Call) Verdict {
	g.deciding.Lock()
	defer g.deciding.Unlock()
	now, about, d, record := g.judge(ctx, call)
	if err := g.options.Emit(event.GateDecided, record); err != nil {
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

// grant records an allowed call of a command tool or an MCP tool.
func (g *Gate) grant(call Call, about subject) {
	if about.permission == permission.MCPCall {
		g.granted[key(call, about.other)]++
		return
	}
	if g.options.Command != nil {
		if command, err := g.options.Command(call); command != "" && err == nil {
			g.granted[key(call, "")]++
		}
	}
}

// Redeem reports whether the gate has allowed this call of a command tool or MCP tool and it has not
// started yet, and marks it as started. Otherwise a program of the agent could call the tool without asking. of is
// server/tool, or "" for a command tool. The caller passes it because a tool's name may refer to another tool by now.
func (g *Gate) Redeem(call Call, of string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted[key(call, of)] == 0 {
		return false
	}
	g.granted[key(call, of)]--
	return true
}

// key identifies a call of a command tool or of server/tool. It is the same for the agent CLI and the tool.
func key(call Call, of string) string {
	return of + " " + ToolName(call) + " " + Canonical(call.Input)
}

// Canonical returns the same text for all spellings of the same arguments.
func Canonical(input json.RawMessage) string {
	arguments, err := strictjson.Object(input)
	if err != nil {
		return string(input)
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return string(input)
	}
	return string(text)
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

// Ended notifies the gate that a call has returned its result.
func (g *Gate) Ended(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if outlasts, running := g.running[id]; running && !outlasts {
		delete(g.running, id)
		g.options.Workspace.AfterCall(id)
	}
}

// Close ends all calls. The agent and its processes must have ended.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.running {
		g.options.Workspace.AfterCall(id)
	}
	clear(g.running)
}

// judge decides about a call, and saves the worktree if the call may change files. It returns the
// call, which a person may have modified, and its subject.
func (g *Gate) judge(ctx context.Context, call Call) (Call, subject, permission.Decision, event.Decision) {
	s := g.describe(call)
	if g.options.Lacks != nil && s.err == nil {
		s.err = g.options.Lacks(call)
	}
	place, d := g.permit(s)
	if d.Action == permission.Ask {
		call, s, place, d = g.ask(ctx, call, s, place, d)
	}
	record := event.Decision{ID: clip(call.ID, maxSubject), Tool: clip(call.Tool, maxSubject), Permission: string(s.permission), Subject: s.text()}
	if d.Allowed() && s.changes() {
		snapshot, err := g.options.Workspace.BeforeCall(ctx, Change{Call: call.ID, Path: place, Note: "before " + Summary(call, g.options.Policy.Root)})
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

// begin records the start of a call that may change files.
func (g *Gate) begin(id string, lingers bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running[id] = lingers
}

// permit checks the permission for a call. It also returns the resolved path of the file that the call
// names, if any.
func (g *Gate) permit(s subject) (place string, d permission.Decision) {
	if s.err != nil {
		return "", refused(s.err.Error())
	}
	if why := exempt(s.permission); why != "" {
		return "", permission.Decision{Action: permission.Allow, Reason: why}
	}
	if s.permission == permission.AgentSpawn && g.options.Descend != nil {
		if err := g.options.Descend(); err != nil {
			return "", refused(err.Error())
		}
	}
	req := permission.Request{Permission: s.permission, Command: s.command, Subject: s.other}
	if s.path != "" {
		place, err := permission.Resolve(g.options.Policy.Root, s.path)
		if err != nil {
			return "", refused(err.Error())
		}
		req.Path = place
	}
	return req.Path, g.options.Policy.Decide(req)
}

func refused(why string) permission.Decision {
	return permission.Decision{Action: permission.Deny, Reason: why}
}
