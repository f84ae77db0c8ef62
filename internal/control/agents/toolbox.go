package agents

import (
	"context"
	"maps"
	"slices"
	"strings"

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
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/worktree"
)

// Toolbox is what the tools of coven's own loop work with. The zero value is enough to describe them.
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

// Described returns all tools that agents of a project can have, without what they work with.
func Described(definitions map[string]grimoires.AgentDefinition, commands map[string]grimoires.CommandTool) ([]tool.Tool, error) {
	r, err := Toolbox{}.Tools()
	if err != nil {
		return nil, err
	}
	nothing := func() *search.Index { return nil }
	c := &Agents{
		Plan: &grimoires.Plan{Agents: definitions}, Workspace: &workspace.Workspace{},
		Search: Search{Files: func(*worktree.Worktree) *search.Index { return nil }, Sessions: nothing},
	}
	own := c.ownTools(&spawner{Agents: c}, asking{})
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

// Has reports whether an agent with a definition and a policy has a tool. Everybody has read, and the tools
// of coven with which agents read, search, start others and ask; those with which they talk, who has the permission. A tool of the project has only an
// agent whose definition names it.
func Has(own grimoires.AgentDefinition, policy *permission.Policy, t tool.Tool) bool {
	if t.Permission == permission.AgentMessage {
		return mayMessage(policy)
	}
	if tool.ForEveryone(t.Name) || t.ID == provider.ToolRead {
		return true
	}
	if t.Permission != "" && !slices.Contains(policy.Grants(), t.Permission) {
		return false
	}
	if t.Source != tool.Builtin {
		return slices.ContainsFunc(own.Tools, func(entry string) bool { return strings.EqualFold(entry, t.Name) })
	}
	ids, _ := tool.IDs(own.Tools)
	return len(own.Tools) == 0 || slices.Contains(ids, t.ID)
}

// todos keeps the list of an agent in the session.
type todos struct {
	session *session.Session
	emit    func(event.Type, any) error
	owner   string // path of the subagent or the reviewer; empty: the agents of steps, who share one list
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
