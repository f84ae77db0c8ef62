// Package toolcall lists the tools of agents for a person, and calls one.
//
// A call passes the gate. Calls that the person's rules deny are refused; calls that need approval are
// allowed, because the person makes them. A tool that may change files runs only in the worktree of a task
// that is not running, after a snapshot and in the task's sandbox.
package toolcall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/launch"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/search"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/command"
	"github.com/coven-run/coven/internal/tool/web"
	"github.com/coven-run/coven/worktree"
)

// Tools returns all tools that agents of a project can have, for display. problems are the errors of the
// project's tool files, by name.
func Tools(p *project.Project) (all []tool.Tool, problems map[string]error, err error) {
	definitions := map[string]grimoires.AgentDefinition{}
	for _, d := range p.Agents().Agents() {
		definitions[d.Name] = agents.Frozen(d)
	}
	commands, problems := p.Tools()
	all, err = launch.Described(definitions, commands)
	return all, problems, err
}

// ToolsOf selects the tools that an agent of a step has in coven's own loop.
func ToolsOf(p *project.Project, d agent.Definition, all []tool.Tool) []tool.Tool {
	own := agents.Frozen(d)
	policy := permission.OfPrimary("/", d.Name, own.Permissions, own.Asks, p.Config.Rules())
	tree := treeOf(p)
	return slices.DeleteFunc(slices.Clone(all), func(t tool.Tool) bool {
		if tree.Has(d.Name) && !tool.ForEveryone(t.Name) {
			return !agents.HasInTree(tree.Branches, d.Name, policy, t)
		}
		return !agents.Has(own, policy, t) || t.ID == tool.Subtask.ID && d.Mode == agent.ModeSubagent
	})
}

// Call runs a tool in the current checkout or task worktree, and returns its answer. Agents must not call
// it: see control.New.
func Call(ctx context.Context, c *control.Controller, name string, arguments json.RawMessage) (string, error) {
	call := &call{Controller: c}
	defer call.close()
	if err := call.find(ctx); err != nil {
		return "", err
	}
	all, commands, err := call.tools()
	if err != nil {
		return "", err
	}
	t, ok := tool.Find(all, name)
	if !ok {
		return "", exit.Usagef("coven tools list", "there is no tool %s%s", name, didyoumean.Aside(name, toolNames(all)))
	}
	if err := t.Check(arguments); err != nil {
		return "", exit.Usagef("coven tools show "+shellword.Word(t.Name), "%w", err)
	}
	if err := call.prepare(ctx, t); err != nil {
		return "", err
	}
	text, err := call.run(ctx, t, arguments, commands)
	return c.Project.Hidden(text), err
}

func toolNames(all []tool.Tool) (names []string) {
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names
}

// call is a call of a tool.
type call struct {
	*control.Controller
	tree   *worktree.Worktree // nil in a checkout of the person
	root   string
	files  *search.Index
	policy *permission.Policy
	space  *workspace.Workspace // nil until it is needed
	giveUp func()               // of the worktree; nil if it is not borrowed
}

// find finds the checkout or worktree of the call.
func (p *call) find(ctx context.Context) error {
	dir, err := p.Project.Env.Workdir()
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	at := p.Project.Repo.Checkout
	p.files = p.Project.Search()
	p.tree, err = p.Project.Repo.Here(ctx, dir)
	switch {
	case err == nil:
		at, p.files = p.tree.Path, p.Project.SearchIn(p.tree)
	case !errors.Is(err, worktree.ErrNoWorktree):
		return err
	}
	if p.root, err = filepath.EvalSymlinks(at); err != nil {
		return fmt.Errorf("find the checkout: %w", err)
	}
	p.policy = permission.OfPrimary(p.root, spawn.User, nil, nil, p.Project.Config.Rules())
	return nil
}

// tools returns the tools that a person can call: those that need no agent.
func (p *call) tools() ([]tool.Tool, map[string]grimoires.CommandTool, error) {
	box, err := launch.Toolbox{Root: p.root, Files: p.files, Policy: p.policy, Shell: p.shell, Web: web.Options{
		Transport: p.transport, Allowed: func(host string) error {
			if d := p.policy.Decide(permission.Request{Permission: permission.NetFetch, Subject: host}); d.Action == permission.Deny {
				return errors.New(d.Reason)
			}
			return nil
		},
	}}.Tools()
	if err != nil {
		return nil, nil, err
	}
	commands, _ := p.Project.Tools() // invalid tools are left out
	for name, d := range commands {
		if err := box.Define(command.Tool(name, d, p.program)); err != nil {
			return nil, nil, err
		}
	}
	return slices.DeleteFunc(box.Tools(), func(t tool.Tool) bool { return t.ID == tool.Todo.ID || t.ID == tool.Subtask.ID }), commands, nil
}

// prepare borrows the task's worktree for a tool that may change files.
func (p *call) prepare(ctx context.Context, t tool.Tool) error {
	if t.ReadOnly {
		return nil
	}
	if p.tree == nil {
		return exit.Usagef("coven worktree list", "%s may change files: call it in the worktree of a task", t.Name)
	}
	space, giveUp, err := p.Borrow(ctx, p.tree.TaskID)
	if err != nil {
		return err
	}
	p.space, p.giveUp = space, giveUp
	return nil
}

// run makes the call if the gate allows it.
func (p *call) run(ctx context.Context, t tool.Tool, arguments json.RawMessage, commands map[string]grimoires.CommandTool) (text string, err error) {
	g := gate.New(gate.Options{
		Policy: p.policy, Workspace: p, Asker: p,
		Emit: func(event.Type, any) error { return nil }, // without an agent there is no record
		Command: func(call gate.Call) (string, error) {
			d, ok := commands[call.Tool]
			if !ok {
				return "", nil
			}
			return command.Text(d, call.Input)
		},
	})
	defer g.Close()
	if verdict := g.Decide(ctx, gate.Call{ID: "call", Tool: t.Name, Input: arguments}); !verdict.Allow {
		return "", exit.Failedf("coven permissions check --help", "%s", verdict.Message)
	}
	work := func() error {
		text, err = t.Call(ctx, arguments)
		return nil
	}
	if p.giveUp == nil {
		return text, errors.Join(work(), err)
	}
	if isolated := p.space.Isolated(ctx, work); isolated != nil {
		return "", isolated
	}
	return text, err
}

// Ask implements the asker of package gate. It allows the call, because the person makes it.
func (p *call) Ask(context.Context, gate.Question) (gate.Answer, error) {
	return gate.Answer{Allow: true, Reason: "you ask for it"}, nil
}

// BeforeCall implements the workspace of package gate.
func (p *call) BeforeCall(ctx context.Context, change gate.Change) (event.Snapshot, error) {
	return p.space.BeforeCall(ctx, change.Call, change.Path, change.Note)
}

// AfterCall implements the workspace of package gate.
func (p *call) AfterCall(id string) { p.space.AfterCall(id) }

func (p *call) shell(ctx context.Context, text string, timeout time.Duration) (process.Exit, []byte, error) {
	return p.program(ctx, []string{"bash", "-c", text}, timeout)
}

func (p *call) program(ctx context.Context, argv []string, timeout time.Duration) (process.Exit, []byte, error) {
	return p.space.RunWith(ctx, sandbox.Access{}, process.Spec{Argv: argv, Dir: p.root, Timeout: timeout})
}

// transport returns the transport of fetch, which uses the network proxy of tasks.
func (p *call) transport(ctx context.Context) (web.Transport, error) {
	if p.space == nil {
		p.space = &workspace.Workspace{Network: workspace.NetworkOf(p.Project), Warn: func(string) {}} // the answer contains the warning
	}
	return p.space.Transport(ctx)
}

func (p *call) close() {
	switch {
	case p.giveUp != nil:
		p.giveUp()
	case p.space != nil:
		p.space.Close()
	}
}
