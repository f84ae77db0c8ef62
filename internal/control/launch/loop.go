package launch

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/todo"
	"github.com/coven-run/coven/internal/tool/web"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// newLoop returns coven's own loop, or nil if a CLI drives the agents of a provider.
func (l *Launcher) newLoop(ctx context.Context, name, path string) (*chat.Loop, error) {
	on, ok := plugins.LoopModel(name)
	if !ok {
		return nil, nil
	}
	m, err := l.Providers.Model(ctx, on)
	if err != nil {
		return nil, err
	}
	return &chat.Loop{
		Model: m, Store: conversation.Store{Session: l.Session, Path: path}, Hidden: l.Workspace.Secrets.Text,
		Cost:   func(id string, used provider.Usage) float64 { return l.priceOf(ctx, on, m, id, used) },
		Window: func(id string) int { return cmp.Or(l.Providers.Info(ctx, on, m, id).Window, model.DefaultWindow) },
	}, nil
}

// priceOf returns the price of an answer by the model plugin, in US dollars, or 0 if the configuration has a price of
// the model.
func (l *Launcher) priceOf(ctx context.Context, plugin string, m model.Model, id string, used provider.Usage) float64 {
	if _, known := l.Prices.Of(id); known {
		return 0
	}
	prices := l.Providers.Info(ctx, plugin, m, id).Prices
	if prices == nil {
		return 0
	}
	price := budget.Price{Input: prices.Input, Output: prices.Output, CacheRead: prices.CacheRead, CacheWrite: prices.CacheWrite}
	return price.Cost(budget.Tokens{Input: used.InputTokens, Output: used.OutputTokens, CacheRead: used.CacheReadTokens, CacheWrite: used.CacheWriteTokens})
}

// todos returns the to-do list of the agent. The agents of steps share a list. A reviewer and a subagent have their
// own: a reviewer must not see the notes of the agent whose work it judges.
func (a *agentRun) todos() todos {
	list := todos{session: a.Session, emit: a.emit}
	if a.subagent || a.readOnly {
		list.owner = a.Path
	}
	return list
}

// remembers connects the loop to the to-do list of its agent. The memory of the agent of a step is stored.
func remembers(loop *chat.Loop, list todos, launch driver.Job) {
	loop.Todos = func() string { return todo.Shown(list.Todos()) }
	if store, ok := loop.Store.(conversation.Store); ok && list.owner == "" {
		loop.Remembered = func(m chat.Memory) error { return store.KeepWorking(launch.Conversation, list.Todos(), m) }
	}
}

// loopTools returns the tools that agent CLIs bring along.
func (a *agentRun) loopTools(p *programs) ([]tool.Tool, error) {
	box := Toolbox{
		Root: a.root, Files: a.Search.Files(a.Workspace.Worktree), Policy: a.Policy, Shell: p.shell, Todos: a.todos(),
		Web: web.Options{Transport: a.Workspace.Transport, Allowed: func(host string) error {
			if d := a.Policy.Decide(permission.Request{Permission: permission.NetFetch, Subject: host}); !d.Allowed() {
				return errors.New(d.Reason)
			}
			return nil
		}},
	}
	if a.tools {
		box.Subtask = a.spawner.subtask
	}
	r, err := box.Tools()
	if err != nil {
		return nil, err
	}
	maySpawn := a.tools && a.admission().Descend(a.Depth) == nil
	return slices.DeleteFunc(r.Tools(), func(t tool.Tool) bool {
		return !a.has(a.role, t) || t.ID == tool.Subtask.ID && !maySpawn
	}), nil
}
