package launch

import (
	"context"
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/command"
	"github.com/coven-run/coven/internal/tool/file"
	"github.com/coven-run/coven/internal/tool/find"
	"github.com/coven-run/coven/internal/tool/shell"
	"github.com/coven-run/coven/internal/tool/todo"
	"github.com/coven-run/coven/internal/tool/web"
	"github.com/coven-run/coven/worktree"
)

// Toolbox has everything that the tools of coven's own loop need. The zero value is enough to describe the tools.
type Toolbox struct {
	Root    string        // of the worktree, with links resolved
	Files   *search.Index // of the worktree
	Policy  *permission.Policy
	Shell   shell.Run
	Web     web.Options
	Todos   todo.Store
	Subtask func(ctx context.Context, r spawn.Request) (string, error)
}

// Tools returns the tools.
func (b Toolbox) Tools() (*tool.Registry, error) {
	all := slices.Concat(file.Tools(b.Root), find.Tools(find.Options{Root: b.Root, Files: b.Files, Check: checker(b.Policy)}), []tool.Tool{
		shell.Tool(b.Shell), web.Tool(b.Web), todo.Tool(b.Todos),
		{
			Kind: tool.Subtask, Category: "utility", ReadOnly: true, Call: tool.Decoded(b.Subtask),
			Description: "Give a separate part of your task to another agent, and wait for its report. It works in the same worktree, knows only what you write, and may do no more than you. It is spawn_agent with an agent like you, unless you name another.",
			Schema:      []byte(spawn.SubtaskSchema),
		},
	})
	var r tool.Registry
	for _, t := range all {
		if err := r.Define(t); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// Described returns all tools that agents of a project can have. They can be described, but not called.
func Described(definitions map[string]grimoires.AgentDefinition, commands map[string]grimoires.CommandTool) ([]tool.Tool, error) {
	r, err := Toolbox{}.Tools()
	if err != nil {
		return nil, err
	}
	nothing := func() *search.Index { return nil }
	c := &Launcher{
		Plan: &grimoires.Plan{Agents: definitions}, Workspace: &workspace.Workspace{},
		Search: Search{Files: func(*worktree.Worktree) *search.Index { return nil }, Sessions: nothing},
	}
	own := c.ownTools(&spawner{Launcher: c}, asking{})
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		own = append(own, command.Tool(name, commands[name], nil))
	}
	for _, t := range own {
		if err := r.Define(t); err != nil {
			return nil, err
		}
	}
	return r.Tools(), nil
}

// todos keeps the list of an agent in the session.
type todos struct {
	session *session.Session
	emit    func(event.Type, any) error
	owner   string // path of the subagent or the reviewer; empty for the agents of steps, who share one list
}

// Todos implements the store of package todo.
func (t todos) Todos() []event.Todo {
	for _, e := range slices.Backward(t.session.Journal.Of(event.TodoChanged)) {
		if all := event.As[event.Todos](e); all.Spawn == t.owner {
			return all.Items
		}
	}
	for _, e := range t.session.Journal.Of(event.SessionStarted) {
		if from := event.As[event.Session](e).Forked; from != nil && t.owner == "" {
			return from.Todos
		}
	}
	return nil
}

// SetTodos implements the store of package todo.
func (t todos) SetTodos(all []event.Todo) error {
	return t.emit(event.TodoChanged, event.Todos{Spawn: t.owner, Items: all})
}

// Divisible returns the tools that a tree divides between its agents: those that the default agent may use, without those
// that everybody has and those with which agents start others.
func Divisible(all map[string]grimoires.AgentDefinition, commands map[string]grimoires.CommandTool, rules []permission.Rule) ([]*tool.Tool, error) {
	described, err := Described(all, commands)
	if err != nil {
		return nil, err
	}
	own := all[grimoires.DefaultAgent]
	granted := permission.OfPrimary("/", grimoires.DefaultAgent, own.Permissions, own.Asks, rules).Grants()
	var tools []*tool.Tool
	for _, t := range described {
		if !tool.ForEveryone(t.Name) && t.ID != tool.Subtask.ID && (t.Permission == "" || slices.Contains(granted, t.Permission)) {
			tools = append(tools, &t)
		}
	}
	return tools, nil
}
