package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/mcp/servers"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/text/shellword"
)

// MCPServer is an MCP server for agents with the file that configures it.
type MCPServer struct {
	servers.Server
	File    string
	Project bool // configured by the repository, so it needs trust
}

// MCPServers returns the MCP servers for agents, sorted by name. The repository's servers override the
// user's servers with the same names.
func (p *Project) MCPServers() ([]MCPServer, error) {
	all, err := p.mcpFile(p.Repo.Root, filepath.Join(".coven", servers.File), true)
	if err != nil {
		return nil, err
	}
	own, err := p.mcpFile(p.Env.UserDir(), servers.File, false)
	if err != nil {
		return nil, err
	}
	for _, s := range own {
		if !slices.ContainsFunc(all, func(theirs MCPServer) bool { return theirs.Name == s.Name }) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b MCPServer) int { return servers.Compare(a.Server, b.Server) })
	return all, nil
}

// serverAgent is the template of an agent with the tools of one server.
const serverAgent = `---
name: %s
description: "Uses the MCP server %[2]s: give it a task for which its tools are made"
mode: subagent
mcp: [%[2]s]
permissions: [{permission: mcp.call, pattern: "%[2]s/*", action: allow}]
---
You do your task with the tools of the MCP server %[2]s. Say what you found or did, and what the tools could not do.
`

// serverAgents returns the definition of an agent for each MCP server, by file name, if mcp.agents is
// set.
func (p *Project) serverAgents() map[string]string {
	made := map[string]string{}
	if p.Repo == nil || !p.Config.MCP.Agents {
		return made
	}
	all, _ := p.MCPServers() // the error is reported when a task starts
	for _, s := range all {
		name := "mcp-" + strings.ToLower(strings.ReplaceAll(s.Name, "_", "-"))
		made[name+".md"] = fmt.Sprintf(serverAgent, name, s.Name)
	}
	return made
}

// PlannedServers returns the MCP servers for the agents of a new session.
func (p *Project) PlannedServers() (all []servers.Server, err error) {
	found, err := p.MCPServers()
	for _, s := range found {
		all = append(all, s.Server)
	}
	return all, err
}

// mcpFile reads a file of servers, which need not exist.
func (p *Project) mcpFile(dir, name string, project bool) ([]MCPServer, error) {
	data, err := regularfile.ReadIn(dir, name, servers.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file := p.Near(filepath.Join(dir, name))
	if err != nil {
		return nil, exit.Usagef("ls -l "+shellword.Word(file), "read %s: %w", file, err)
	}
	found, err := servers.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var all []MCPServer
	for _, s := range found {
		all = append(all, MCPServer{s, file, project})
	}
	return all, nil
}

// ServerRequests returns the requests to start those servers of a plan that the user has not configured.
func (p *Project) ServerRequests(planned []servers.Server) ([]Request, error) {
	if len(planned) == 0 {
		return nil, nil
	}
	own, err := p.mcpFile(p.Env.UserDir(), servers.File, false)
	if err != nil {
		return nil, err
	}
	var all []Request
	for _, s := range planned {
		if !slices.ContainsFunc(own, func(mine MCPServer) bool { return mine.Name == s.Name && mine.SHA256() == s.SHA256() }) {
			all = append(all, requestOf(s))
		}
	}
	return all, nil
}

// requestedServers returns the requests of a plan, or those of the repository's file if planned is nil.
func (p *Project) requestedServers(planned []servers.Server) ([]Request, error) {
	if planned != nil {
		return p.ServerRequests(planned)
	}
	theirs, err := p.mcpFile(p.Repo.Root, filepath.Join(".coven", servers.File), true)
	if err != nil {
		return nil, err
	}
	var all []Request
	for _, s := range theirs {
		all = append(all, requestOf(s.Server))
	}
	return all, nil
}

func requestOf(s servers.Server) Request {
	r := Request{Kind: trust.KindServer, Name: s.Name, Why: "an MCP server for agents", Uses: []string{s.What()}}
	for _, name := range s.Variables() {
		r.Uses = append(r.Uses, "it gets $"+name)
	}
	r.Uses = append(r.Uses, "sha256 "+s.SHA256())
	return r
}
