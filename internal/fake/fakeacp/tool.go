package fakeacp

import (
	"context"
	"os"
	"os/exec"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is a call of an MCP server's tool.
type Tool struct {
	Name      string         `yaml:"name"`
	Arguments map[string]any `yaml:"arguments"`
}

// server is an MCP server from the client.
type server struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
}

// use starts the client's servers one after the other and calls the tool of the first server that has it.
func (a *agent) use(ctx context.Context, call Tool) {
	a.last = "no server has " + call.Name
	for _, s := range a.servers {
		if text, ok := s.call(ctx, call.Name, a.filled(call.Arguments)); ok {
			a.last = text
			break
		}
	}
	a.note("tool " + call.Name + " " + a.last)
}

// call calls a tool. ok is false if the server does not have it.
func (s server) call(ctx context.Context, tool string, arguments map[string]any) (text string, ok bool) {
	cmd := exec.CommandContext(ctx, s.Command, s.Args...) //nolint:gosec // the command comes from the client
	cmd.Env = os.Environ()
	for _, v := range s.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "fakeacp", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err.Error(), true
	}
	defer session.Close() //nolint:errcheck // the call is over
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err.Error(), true
		}
		ok = ok || t.Name == tool
	}
	if !ok {
		return "", false
	}
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range result.Content {
		if part, is := c.(*sdk.TextContent); is {
			text += part.Text
		}
	}
	return text, true
}
