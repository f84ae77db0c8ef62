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
	Project bool     // configured by the repository, so that it needs trust
	Public  bool     // configured by the repository for any program, so that it is left out without trust
	Hides   []string // files that have a server of the same name
}

// MCPServers returns the MCP servers for agents, sorted by name, and the problems of their files. The servers in the
// repository's .coven come before the user's, and those before the ones that the repository has for all programs. A
// disabled one hides others of its name.
func (p *Project) MCPServers() (all []MCPServer, problems []servers.Problem, err error) {
	taken := map[string]int{} // index in all, or -1 if the server is disabled
	for _, f := range p.mcpFiles() {
		found, err := p.readMCPFile(f)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, found.Problems...)
		for _, s := range found.Servers {
			switch i, ok := taken[s.Name]; {
			case !ok:
				taken[s.Name] = len(all)
				all = append(all, MCPServer{Server: s, File: p.Near(f.path()), Project: f.project, Public: f.public})
			case i >= 0:
				all[i].Hides = append(all[i].Hides, p.Near(f.path()))
			}
		}
		for _, name := range found.Disabled {
			if _, ok := taken[name]; !ok {
				taken[name] = -1
			}
		}
	}
	slices.SortFunc(all, func(a, b MCPServer) int { return servers.Compare(a.Server, b.Server) })
	return all, problems, nil
}

// mcpFile is a file of MCP servers.
type mcpFile struct {
	dir, name string
	project   bool // of the repository, so that its servers need trust
	public    bool // for all programs
}

func (f mcpFile) path() string { return filepath.Join(f.dir, f.name) }

// mcpFiles returns the files of MCP servers, in descending precedence.
func (p *Project) mcpFiles() []mcpFile {
	return []mcpFile{
		{p.definitions().Root, filepath.Join(".coven", servers.File), true, false},
		p.userMCPFile(),
		{p.definitions().Root, servers.PublicFile, true, true},
	}
}

func (p *Project) userMCPFile() mcpFile { return mcpFile{dir: p.Env.UserDir(), name: servers.File} }

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
	all, _, _ := p.PlannedServers() // the error is reported when a task starts
	for _, s := range all {
		name := "mcp-" + strings.ToLower(strings.ReplaceAll(s.Name, "_", "-"))
		made[name+".md"] = fmt.Sprintf(serverAgent, name, s.Name)
	}
	return made
}

// PlannedServers returns the MCP servers for the agents of a new session. It leaves out those of the repository that
// are for all programs and that the user does not trust. left has the reasons for the servers that are left out.
func (p *Project) PlannedServers() (all []servers.Server, left []error, err error) {
	found, problems, err := p.MCPServers()
	if err != nil {
		return nil, nil, err
	}
	for _, problem := range problems {
		if !problem.IsNote {
			left = append(left, problem.FileError)
		}
	}
	var untrusted []string
	for _, s := range found {
		if s.Public && p.CheckRequests([]Request{requestOf(s.Server)}) != nil {
			untrusted = append(untrusted, s.Name)
			continue
		}
		all = append(all, s.Server)
	}
	if len(untrusted) > 0 {
		left = append(left, exit.Usagef("coven trust", "you have not trusted these servers of %s: %s", servers.PublicFile, strings.Join(untrusted, ", ")))
	}
	return all, left, nil
}

// readMCPFile reads a file of servers, which need not exist. A file for all programs that cannot be read is a problem
// only: they may have another format for it.
func (p *Project) readMCPFile(f mcpFile) (servers.Config, error) {
	data, err := regularfile.ReadIn(f.dir, f.name, servers.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return servers.Config{}, nil
	}
	file := p.Near(f.path())
	if err != nil {
		err = exit.Usagef("ls -l "+shellword.Word(file), "read %s: %w", file, regularfile.Cause(err))
	}
	var found servers.Config
	if err == nil {
		found, err = servers.Parse(file, data)
	}
	if err == nil || !f.public {
		return found, err
	}
	wrong := &servers.FileError{File: file, Msg: err.Error()}
	_ = errors.As(err, &wrong) // otherwise it is the error of reading
	return servers.Config{Problems: []servers.Problem{{FileError: wrong}}}, nil
}

// ServerRequests returns the requests to start those servers of a plan that the user has not configured.
func (p *Project) ServerRequests(planned []servers.Server) ([]Request, error) {
	if len(planned) == 0 {
		return nil, nil
	}
	own, err := p.readMCPFile(p.userMCPFile())
	if err != nil {
		return nil, err
	}
	var all []Request
	for _, s := range planned {
		if !slices.ContainsFunc(own.Servers, func(mine servers.Server) bool { return mine.Name == s.Name && mine.SHA256() == s.SHA256() }) {
			all = append(all, requestOf(s))
		}
	}
	return all, nil
}

// requestedServers returns the requests of a plan, or those of the repository's files if planned is nil.
func (p *Project) requestedServers(planned []servers.Server) ([]Request, error) {
	if planned != nil {
		return p.ServerRequests(planned)
	}
	found, _, err := p.MCPServers()
	var all []Request
	for _, s := range found {
		if s.Project {
			all = append(all, requestOf(s.Server))
		}
	}
	return all, err
}

func requestOf(s servers.Server) Request {
	r := Request{Kind: trust.KindServer, Name: s.Name, Why: "an MCP server for agents", Uses: []string{s.What()}}
	for _, name := range s.Variables() {
		r.Uses = append(r.Uses, "it gets $"+name)
	}
	r.Uses = append(r.Uses, "sha256 "+s.SHA256())
	return r
}
