package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp/client"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/builtin"
)

// connectServers connects the agent to its MCP servers and gives it their tools. The servers are programs of the task:
// they are restricted as its steps are, and each has a directory for its state.
func (a *agentRun) connectServers(ctx context.Context) {
	own := a.definition
	warn := func(format string, args ...any) {
		_ = a.emit(event.Warning, event.Text{Text: oneline.Of(a.Workspace.Secrets.Text(fmt.Sprintf(format, args...)))}) // a journal that fails stops the agent elsewhere
	}
	use := a.serversOf(own, a.Plan.MCP)
	for _, name := range own.MCP {
		if !slices.ContainsFunc(use, func(s servers.Server) bool { return s.Name == name }) {
			warn("the agent works without the MCP server %s: none is configured and trusted (coven mcp list)", name)
		}
	}
	if len(use) == 0 || !mayCall(a.Policy) || a.isRoot(a.Agent) {
		return
	}
	if builtin.Toolless(a.provider) {
		warn("the agent works without MCP servers: its CLI, %s, takes none from coven (claude, acp and coven's own loop do)", a.provider)
		return
	}
	taken := slices.AppendSeq(tool.Names(), maps.Keys(a.Plan.Tools))
	for _, t := range a.job.Own {
		taken = append(taken, t.Name)
	}
	set := client.Connect(ctx, use, client.Options{
		Version: a.Version, Getenv: a.Getenv, Taken: taken,
		Start: func(ctx context.Context, s servers.Server) (*exec.Cmd, func(), error) {
			return a.startServer(ctx, s, a.job)
		},
		Log: func(server string) io.Writer { return a.serverLog(a.Path, server) },
		Stale: func(f client.Failure) {
			warn("the agent keeps the tools that the MCP server %s had before: %v", f.Server, f.Err)
		},
	})
	a.closeServers = set.Close
	for _, f := range set.Failures() {
		warn("the agent works without the MCP server %s: %v", f.Server, f.Err)
	}
	a.job.More = func() []tool.Tool { return a.toolsOfServers(set) }
}

// toolsOfServers returns the tools that the agent has of its servers now, and notes them for the gate. A tool with a
// name like those of coven's own MCP server is left out: the gate would judge it as another.
func (a *agentRun) toolsOfServers(set *client.Set) (all []tool.Tool) {
	subjects := map[string]string{}
	for _, t := range set.Tools() {
		subject := t.Server + "/" + t.Original
		if gate.ToolName(gate.Call{Tool: t.Name}) != t.Name {
			continue
		}
		if !a.hasOfServer(a.Agent, a.definition, t) || a.Policy.Decide(permission.Request{Permission: permission.MCPCall, Subject: subject}).Action == permission.Deny {
			continue
		}
		subjects[t.Name] = subject
		all = append(all, a.guarded(t, a.gate, subject))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serverTools = subjects
	return all
}

// serverTool returns SERVER/TOOL for the name of a tool of an MCP server, or "".
func (a *agentRun) serverTool(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serverTools[name]
}

// serversOf returns the servers that an agent uses.
func (l *Launcher) serversOf(own grimoires.AgentDefinition, all []servers.Server) []servers.Server {
	return slices.DeleteFunc(slices.Clone(all), func(s servers.Server) bool {
		if len(own.MCP) == 0 {
			return l.isSkills(s.Name, own)
		}
		return !slices.Contains(own.MCP, s.Name) && !l.needs(own, s.Name)
	})
}

// mayCall reports whether an agent may call a tool of a server at all, if only after a person has approved it.
func mayCall(policy *permission.Policy) bool {
	return slices.Contains(policy.Grants(), permission.MCPCall) || policy.Decide(permission.Request{Permission: permission.MCPCall}).Action != permission.Deny
}

// wants reports whether an agent with a list of tools has one of a server: it names the tool, or the server.
func wants(own grimoires.AgentDefinition, t client.Tool) bool {
	return len(own.Tools) == 0 || slices.Contains(own.MCP, t.Server) || slices.ContainsFunc(own.Tools, func(entry string) bool {
		for _, name := range []string{t.Name, t.Original, t.Server + "_" + t.Original} {
			if ok, err := path.Match(entry, name); err == nil && ok {
				return true
			}
		}
		return false
	})
}

// startServer returns the command of a server.
func (l *Launcher) startServer(ctx context.Context, s servers.Server, launch driver.Job) (*exec.Cmd, func(), error) {
	state := filepath.Join(l.Workspace.Worktree.StateDir(), "mcp", s.Name)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make its directory: %w", err)
	}
	access := sandbox.Access{ReadOnly: launch.ReadOnly, Apart: true, Write: []string{state}}
	env := slices.Concat(launch.Env, []string{"XDG_STATE_HOME=" + state, "XDG_DATA_HOME=" + state, "XDG_CONFIG_HOME=" + state})
	cmd, release, all, err := l.Workspace.Command(ctx, access, env, s.Argv...)
	return s.With(cmd, launch.Dir, all), release, err
}

// serverLog returns the log for a server's standard error.
func (l *Launcher) serverLog(path, server string) io.Writer {
	log, _, err := l.Session.OpenLog(path + "/mcp/" + server)
	if err != nil {
		return io.Discard // it is for people only
	}
	return log
}

// guarded returns a tool whose calls run only if the gate allowed them, which a program of the agent could try to
// get around, and whose results have no secrets.
func (l *Launcher) guarded(of client.Tool, g *gate.Gate, subject string) tool.Tool {
	t := of.Tool
	t.Source, t.Category, t.Permission = "mcp:"+of.Server, "api", permission.MCPCall
	t.Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
		text, err := of.Call(ctx, arguments)
		if err != nil {
			return "", errors.New(l.Workspace.Secrets.Text(err.Error()))
		}
		return l.Workspace.Secrets.Text(text), nil
	}
	return redeemed(t, g, subject)
}
