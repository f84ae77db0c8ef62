package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/chat"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/tool"
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
		Model: m, Store: conversations{c.Session, path},
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
	own      grimoires.AgentDefinition
	policy   *permission.Policy
	spawns   *spawner // nil: it starts no others
	subagent string   // its path; empty: it is the agent of a step
}

// run runs an agent where its provider does.
func (c *Agents) run(ctx context.Context, at setting, as role, keeper *gate.Gate, launch driver.Job) (driver.Report, error) {
	keeper.Lacks(c.lacks(as.name, func() []tool.Tool { return launch.Offered() }))
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
	keeper.Checks(func(call gate.Call) error { return tool.Check(launch.Offered(), call.Tool, call.Input) })
	return at.loop.Run(ctx, launch)
}

// loopTools returns the tools that agent CLIs bring along.
func (c *Agents) loopTools(at setting, as role, launch driver.Job, p *programs) ([]tool.Tool, error) {
	box := Toolbox{
		Root: at.root, Files: c.Search.Files(c.Workspace.Worktree), Policy: as.policy, Shell: p.shell,
		Todos: todos{c.Session, launch.Emit, as.subagent},
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

// conversations keeps the conversations of a step in the session.
type conversations struct {
	session *session.Session
	path    string
}

// Load implements the store of package chat.
func (c conversations) Load(id string) ([]chat.Message, error) {
	stored, err := c.session.Conversation(id)
	if err != nil {
		return nil, err
	}
	var all []chat.Message
	for _, m := range stored {
		message := chat.Message{ID: m.ID, Message: model.Message{Role: model.Role(m.Role)}}
		for _, p := range m.Parts {
			if part := partOf(p); part != nil {
				message.Parts = append(message.Parts, part)
			}
		}
		all = append(all, message)
	}
	return all, nil
}

func partOf(p session.Part) model.Part {
	switch p.Type {
	case "text":
		return model.Text{Text: p.Text}
	case "reasoning":
		return model.Reasoning{Text: p.Text, Signature: p.Signature}
	case "tool_call":
		return provider.ToolCall{ID: p.ID, Name: p.Tool, Input: p.Input}
	case "summary":
		return chat.Summary{Text: p.Text, Up: p.ID, Count: p.Messages}
	case "tool_result":
		return provider.ToolResult{ID: p.ID, Text: p.Text, IsError: p.Error}
	}
	return nil
}

// Append implements the store of package chat.
func (c conversations) Append(id string, m chat.Message) error {
	stored := session.Message{ID: m.ID, Role: string(m.Role)}
	for _, part := range m.Parts {
		var p session.Part
		switch e := part.(type) {
		case model.Text:
			p.Type, p.Text = "text", e.Text
		case model.Reasoning:
			p.Type, p.Text, p.Signature = "reasoning", e.Text, e.Signature
		case provider.ToolCall:
			p.Type, p.ID, p.Tool, p.Input = "tool_call", e.ID, e.Name, e.Input
		case chat.Summary:
			p.Type, p.Text, p.ID, p.Messages = "summary", e.Text, e.Up, e.Count
		case provider.ToolResult:
			p.Type, p.ID, p.Text, p.Error = "tool_result", e.ID, e.Text, e.IsError
		default:
			return fmt.Errorf("%T is not a part of a message", part)
		}
		stored.Parts = append(stored.Parts, p)
	}
	return c.session.Record(c.path, id, stored)
}
