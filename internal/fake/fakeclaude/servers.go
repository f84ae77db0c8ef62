package fakeclaude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// servers are the MCP servers of --mcp-config, by name.
type servers map[string]*server

// server is one MCP server, a child process on standard input and output. A dead
// server is restarted when it is needed, as in the real CLI.
type server struct {
	spec  serverSpec
	tools []*mcp.Tool

	mu      sync.Mutex
	session *mcp.ClientSession
	dead    chan struct{} // closed when session ends
}

type serverSpec struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// startTimeout is the timeout for the first response of a server. The real
// CLI uses the same variable.
func startTimeout() time.Duration {
	if limit, err := time.ParseDuration(os.Getenv("MCP_TIMEOUT") + "ms"); err == nil {
		return limit
	}
	return 30 * time.Second
}

// startServers starts all servers. It keeps failed servers without a session.
func startServers(ctx context.Context, config string) (servers, error) {
	if config == "" {
		return servers{}, nil
	}
	data, err := inlineOrFile(config)
	if err != nil {
		return nil, fmt.Errorf("Error: Invalid MCP configuration:\nMCP config file not found: %s", config)
	}
	var file struct {
		Servers map[string]serverSpec `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("Error: Invalid MCP configuration: %w", err)
	}
	all := servers{}
	for name, spec := range file.Servers {
		one := &server{spec: spec}
		if session, err := one.connected(ctx); err == nil {
			one.listTools(ctx, session)
		}
		all[name] = one
	}
	return all, nil
}

// connected returns a live session. It starts a new one if necessary.
func (s *server) connected(ctx context.Context) (*mcp.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive() {
		return s.session, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout())
	defer cancel()
	command := exec.CommandContext(context.WithoutCancel(ctx), s.spec.Command, s.spec.Args...) //nolint:gosec // running the configured command is the purpose
	command.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(s.spec.Env)) {
		command.Env = append(command.Env, name+"="+s.spec.Env[name])
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: Version}, nil)
	session, err := client.Connect(ctx, noting{&mcp.CommandTransport{Command: command, TerminateDuration: 200 * time.Millisecond}}, nil)
	if err != nil {
		return nil, fmt.Errorf("start MCP server: %w", err)
	}
	dead := make(chan struct{})
	go func() {
		_ = session.Wait() // only the end matters, not the error
		close(dead)
	}()
	s.session, s.dead = session, dead
	return session, nil
}

// forget drops a session unless there is a newer one.
func (s *server) forget(session *mcp.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session = nil
	}
}

// alive reports whether the session is alive. The caller must hold the lock.
func (s *server) alive() bool {
	if s.session == nil {
		return false
	}
	select {
	case <-s.dead:
		return false
	default:
		return true
	}
}

func (s *server) listTools(ctx context.Context, session *mcp.ClientSession) {
	if listed, err := session.ListTools(ctx, nil); err == nil {
		s.tools = listed.Tools
	}
}

// status returns the status for the init event.
func (s *server) status() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alive() {
		return "connected"
	}
	return "failed"
}

// call calls a tool and returns its text.
func (s *server) call(ctx context.Context, tool string, arguments object) (text string, isError bool, err error) {
	session, err := s.connected(ctx)
	if err != nil {
		return "", false, err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		if said := (*jsonrpc.Error)(nil); !errors.As(err, &said) {
			s.forget(session) // it has ended, even if that was not noticed yet
		}
		return "", false, fmt.Errorf("MCP error -32000: %w", err)
	}
	var texts []string
	for _, content := range result.Content {
		if block, isText := content.(*mcp.TextContent); isText {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n"), result.IsError, nil
}

// find looks up a tool by its full name, mcp__SERVER__TOOL.
func (all servers) find(full string) (*server, string, bool) {
	for name, server := range all {
		tool, found := strings.CutPrefix(full, "mcp__"+name+"__")
		if found && slices.ContainsFunc(server.tools, func(t *mcp.Tool) bool { return t.Name == tool }) {
			return server, tool, true
		}
	}
	return nil, "", false
}

// readOnly reports whether a tool is declared as read-only.
func (all servers) readOnly(full string) bool {
	server, name, found := all.find(full)
	return found && slices.ContainsFunc(server.tools, func(t *mcp.Tool) bool {
		return t.Name == name && t.Annotations != nil && t.Annotations.ReadOnlyHint
	})
}

type sentKey struct{}

// withSent returns a context whose tool call calls sent once its request was sent.
func withSent(ctx context.Context, sent func()) context.Context {
	return context.WithValue(ctx, sentKey{}, sent)
}

// noting is a transport that reports when a request was sent.
type noting struct{ mcp.Transport }

// Connect implements mcp.Transport.
func (t noting) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	return notingConn{conn}, err
}

type notingConn struct{ mcp.Connection }

// Write implements mcp.Connection.
func (c notingConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if sent, ok := ctx.Value(sentKey{}).(func()); ok {
		sent()
	}
	return err
}

// names returns the full names of all tools.
func (all servers) names() []string {
	names := []string{}
	for name, server := range all {
		for _, tool := range server.tools {
			names = append(names, "mcp__"+name+"__"+tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

// close ends all live servers concurrently.
func (all servers) close() {
	var group sync.WaitGroup
	for _, server := range all {
		group.Go(func() {
			server.mu.Lock()
			defer server.mu.Unlock()
			if server.alive() {
				_ = server.session.Close() // both processes are exiting
			}
		})
	}
	group.Wait()
}
