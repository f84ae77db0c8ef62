package launch

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
)

// role identifies an agent in a conversation and says what it may do. The agent of a step, a reviewer, a subagent and
// an evaluator differ only in their roles.
type role struct {
	// Caller is the agent as a caller of subagents. Path is that of all its events, and Trace their trace ID.
	spawn.Caller
	definition grimoires.AgentDefinition
	provider   string
	system     systemOf
	stateDir   string      // where its CLI keeps its settings and conversations
	dir        string      // relative to the worktree
	env        []string    // KEY=VALUE
	readOnly   bool        // it cannot change the worktree
	tools      bool        // it has the tools of coven and of MCP servers
	silent     bool        // it cannot ask a person
	subagent   bool        // it, or the agent whose work it evaluates, was started by another
	expired    func(error) // stops the agent when a question to a person expires; nil means that it continues
}

// assignment is the work of an agent in one run: its prompt, limits and outputs.
type assignment struct {
	id         string // of the conversation
	resume     bool   // the conversation exists
	prompt     string
	maxTurns   int // 0 means any number
	transcript io.Writer
	messages   <-chan event.Message
	spend      func(event.Usage) error
	charge     func() runner.Charge // for each run of a subagent that the agent starts
}

// agentRun is an agent that is ready to run once, with everything that ends with it.
type agentRun struct {
	*Launcher
	role
	place
	gate     *gate.Gate
	spawner  *spawner
	commands map[string]grimoires.CommandTool
	limits   *limitTracker
	job      driver.Job

	closeServers func()
	mu           sync.Mutex
	serverTools  map[string]string // SERVER/TOOL by the name that the agent has for it
}

// launch prepares an agent for one run. The caller runs it, and closes it.
func (l *Launcher) launch(ctx context.Context, who role, work assignment) (*agentRun, error) {
	where, err := l.place(ctx, who)
	if err != nil {
		return nil, err
	}
	a := &agentRun{
		Launcher: l, role: who, place: where, commands: l.commandsOf(who), closeServers: func() {},
		limits:  &limitTracker{launcher: l, provider: who.provider, account: where.traits.Account},
		spawner: &spawner{Launcher: l, ctx: ctx, caller: who.Caller, charge: work.charge},
	}
	ask := l.asker(ctx, where.root, who.Agent, a.emit)
	ask.expired = who.expired
	a.gate = gate.New(a.gateOptions(ask))
	a.job = driver.Job{
		Agent: who.Agent, Depth: who.Depth, Provider: where.plugin,
		Input: driver.Input{
			Conversation: work.id, Resume: work.resume, Prompt: work.prompt, System: l.systemText(ctx, where.root, who.system), Model: who.Model, Tools: l.listed(who),
		},
		Place: driver.Place{
			Dir: where.dir, ReadOnly: who.readOnly, StateDir: who.stateDir, Room: where.room, Network: where.network, Pass: l.Workspace.Pass,
			Env:     slices.Concat([]string{workspace.TraceVariable + "=" + who.Trace}, who.env),
			Forward: l.forwarder(a.emit),
		},
		Limits: driver.Limits{MaxTurns: work.maxTurns, Idle: l.Idle, SameCall: l.Limits.SameCall, Spend: work.spend, Limit: a.limits.limited, Fault: a.limits.fault},
		Record: driver.Record{Transcript: work.transcript, Emit: a.emit, Say: func(part provider.Event) error { return a.say(ctx, part) }},
		Gate:   a.gate, Ungated: l.Ungated, Messages: work.messages, Excuse: l.excuse,
	}
	if !who.readOnly {
		a.job.Save = l.saver(where.traits, a.emit)
	}
	if who.tools {
		a.job.Own = l.ofTree(who.Agent, append(l.ownTools(a.spawner, ask), l.skillTools(who.definition)...))
		a.connectServers(ctx)
	}
	return a, nil
}

// gateOptions returns the options of the agent's gate.
func (a *agentRun) gateOptions(ask asking) gate.Options {
	o := gate.Options{
		Policy: a.Policy, Workspace: recorded{a.Launcher, a.Path}, Emit: a.emit,
		Descend: func() error { return a.admission().Descend(a.Depth) },
		Lacks:   a.lacks, Command: commandText(a.commands), Server: a.serverTool,
	}
	if !a.silent {
		o.Asker = ask
	}
	if a.loop != nil {
		o.Check = func(call gate.Call) error { return tool.Check(a.job.Offered(), call.Tool, call.Input) }
	}
	return o
}

// close ends everything that belongs to the agent, and waits for its subagents. The error means that the limits of
// its account could not be recorded.
func (a *agentRun) close() error {
	a.closeServers()
	a.gate.Close()
	a.spawner.work.Wait()
	return a.limits.broken
}

// run runs the agent: in its CLI, or in coven's own loop.
func (a *agentRun) run(ctx context.Context) (driver.Report, error) {
	if a.loop == nil && a.job.More != nil { // a CLI has the tools of its start
		a.job.Own, a.job.More = a.job.Offered(), nil
	}
	a.job.Host = host{a.Launcher, a.root, a.job}
	report, err := a.drive(ctx)
	return a.hide(report), err
}

func (a *agentRun) drive(ctx context.Context) (driver.Report, error) {
	if a.loop == nil && len(a.commands) == 0 {
		return a.Runner.Run(ctx, a.job)
	}
	d, err := a.Runner.OpenToolServer(ctx, a.job)
	if err != nil {
		return driver.Report{}, err
	}
	defer d.Close()
	p := &programs{launcher: a.Launcher, job: a.job, server: d}
	a.job.Own = append(slices.Clone(a.job.Own), p.tools(a.commands, a.gate)...)
	if a.loop == nil {
		return a.Runner.Run(ctx, a.job)
	}
	tools, err := a.loopTools(p)
	if err != nil {
		return driver.Report{}, err
	}
	a.job.Own = append(tools, a.job.Own...)
	loop := *a.loop
	remembers(&loop, a.todos(), a.job)
	return loop.Run(ctx, a.job)
}

func (a *agentRun) emit(t event.Type, data any) error {
	return a.Session.Append(event.Event{Type: t, Path: a.Path, TraceID: a.Trace}, data)
}

// say adds a part to the session's conversation. The loop does that itself.
func (a *agentRun) say(ctx context.Context, part provider.Event) error {
	a.limits.observe(part)
	p := session.Part{Path: a.Path}
	switch e := part.(type) {
	case provider.Text:
		p.Type, p.Text = "text", e.Text
	case provider.Reasoning:
		p.Type, p.Text = "reasoning", e.Text
	case provider.ToolCall:
		tool.Progress(ctx, a.Agent+": "+gate.Summary(gate.Call{ID: e.ID, Tool: e.Name, Input: e.Input}, a.root))
		p.Type, p.ID, p.Tool, p.Input = "tool_call", e.ID, e.Name, e.Input
	case provider.ToolResult:
		p.Type, p.ID, p.Text, p.Error = "tool_result", e.ID, e.Text, e.IsError
	default:
		return nil
	}
	if a.loop != nil {
		return nil
	}
	return a.Session.Say(p)
}
