package agents

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/chat"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/todo"
	"github.com/coven-run/coven/internal/tool/web"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// loop returns coven's own loop if agents of a provider run in it; nil: a CLI drives them.
func (c *Agents) loop(ctx context.Context, name, path string) (*chat.Loop, error) {
	on, ok := plugins.LoopModel(cmp.Or(name, c.Plan.Provider))
	if !ok {
		return nil, nil
	}
	m, err := c.Providers.model(ctx, on)
	if err != nil {
		return nil, err
	}
	return &chat.Loop{
		Model: m, Store: conversation.Store{Session: c.Session, Path: path}, Hidden: c.Workspace.Secrets.Text,
		Cost:   func(id string, used provider.Usage) float64 { return c.priceOf(ctx, on, m, id, used) },
		Window: func(id string) int { return cmp.Or(c.Providers.Info(ctx, on, m, id).Window, model.DefaultWindow) },
	}, nil
}

// priceOf returns what an answer costs at the prices of the model plugin, in US dollars, or 0 if
// coven has a price itself.
func (c *Agents) priceOf(ctx context.Context, plugin string, m model.Model, id string, used provider.Usage) float64 {
	if _, known := c.Prices.Of(id); known {
		return 0
	}
	prices := c.Providers.Info(ctx, plugin, m, id).Prices
	if prices == nil {
		return 0
	}
	price := budget.Price{Input: prices.Input, Output: prices.Output, CacheRead: prices.CacheRead, CacheWrite: prices.CacheWrite}
	return price.Cost(budget.Tokens{Input: used.InputTokens, Output: used.OutputTokens, CacheRead: used.CacheReadTokens, CacheWrite: used.CacheWriteTokens})
}

// role is who an agent is, as far as its tools depend on it.
type role struct {
	name     string
	provider string
	own      grimoires.AgentDefinition
	policy   *permission.Policy
	spawns   *spawner // nil: it starts no others
	subagent string   // its path; empty: it is the agent of a step
}

// run runs an agent where its provider does.
func (c *Agents) run(ctx context.Context, at setting, as role, keeper *gate.Gate, launch driver.Job) (driver.Report, error) {
	if at.loop == nil && launch.More != nil { // a CLI has the tools of its start
		launch.Own, launch.More = launch.Offered(), nil
	}
	keeper.Lacks(c.lacks(as.name, func() []tool.Tool { return launch.Offered() }))
	launch.Host = host{c, at.root, launch}
	commands := c.commandsOf(as)
	if at.loop == nil && len(commands) == 0 {
		return c.Runner.Run(ctx, launch)
	}
	d, err := c.Runner.Open(ctx, launch)
	if err != nil {
		return driver.Report{}, err
	}
	defer d.Close()
	p := &programs{agents: c, launch: launch, door: d}
	launch.Own = append(slices.Clone(launch.Own), p.tools(commands, keeper)...)
	keeper.Commands(commandText(commands))
	if at.loop == nil {
		return c.Runner.Run(ctx, launch)
	}
	tools, err := c.loopTools(at, as, launch, p)
	if err != nil {
		return driver.Report{}, err
	}
	launch.Own = append(tools, launch.Own...)
	loop := *at.loop
	remembers(&loop, c.listOf(at, as, launch), launch)
	keeper.Checks(func(call gate.Call) error { return tool.Check(launch.Offered(), call.Tool, call.Input) })
	return loop.Run(ctx, launch)
}

// listOf returns the list of what an agent has to do. The agents of steps share one. A reviewer has its own, like a
// subagent: it sees nothing that those have noted whose work it judges.
func (c *Agents) listOf(at setting, as role, launch driver.Job) todos {
	list := todos{c.Session, launch.Emit, as.subagent}
	if store, ok := at.loop.Store.(conversation.Store); ok && launch.ReadOnly {
		list.owner = store.Path
	}
	return list
}

// remembers shows an agent its list of what is to do, and keeps what it has in mind if it works for a step.
func remembers(loop *chat.Loop, list todos, launch driver.Job) {
	loop.Todos = func() string { return todo.Shown(list.Todos()) }
	if store, ok := loop.Store.(conversation.Store); ok && list.owner == "" {
		loop.Remembered = func(m chat.Memory) error { return store.KeepWorking(launch.Conversation, list.Todos(), m) }
	}
}

// loopTools returns the tools that agent CLIs bring along.
func (c *Agents) loopTools(at setting, as role, launch driver.Job, p *programs) ([]tool.Tool, error) {
	box := Toolbox{
		Root: at.root, Files: c.Search.Files(c.Workspace.Worktree), Policy: as.policy, Shell: p.shell,
		Todos: c.listOf(at, as, launch),
		Web: web.Options{Transport: c.Workspace.Transport, Allowed: func(host string) error {
			if d := as.policy.Decide(permission.Request{Permission: permission.NetFetch, Subject: host}); !d.Allowed() {
				return errors.New(d.Reason)
			}
			return nil
		}},
	}
	if as.spawns != nil {
		box.Subtask = as.spawns.subtask
	}
	r, err := box.Tools()
	if err != nil {
		return nil, err
	}
	maySpawn := as.spawns != nil && c.admission().Descend(launch.Depth) == nil
	return slices.DeleteFunc(r.Tools(), func(t tool.Tool) bool {
		return !c.has(as, t) || t.ID == agent.ToolSubtask && !maySpawn
	}), nil
}
