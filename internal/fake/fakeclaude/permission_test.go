package fakeclaude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// permissionRole is the argument that turns the test binary into an MCP server with
// the permission tool, on standard input and output.
const permissionRole = "permission-server"

// asked is one line of the permission server's log: its start, with only
// the PID, or a question.
type asked struct {
	PID       int            `json:"pid"`
	ToolName  string         `json:"tool_name,omitempty"`
	Input     map[string]any `json:"input,omitempty"`
	ToolUseID string         `json:"tool_use_id,omitempty"`
}

type question struct {
	ToolName  string         `json:"tool_name"`
	Input     map[string]any `json:"input"`
	ToolUseID string         `json:"tool_use_id,omitempty"`
}

type spawn struct {
	Agent string `json:"agent"`
}

func servePermissions(log string) int {
	server := mcp.NewServer(&mcp.Implementation{Name: "coven", Version: "test"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "approve", Description: "decides on a tool call"},
		func(_ context.Context, _ *mcp.CallToolRequest, q question) (*mcp.CallToolResult, any, error) {
			err := appendLog(log, asked{os.Getpid(), q.ToolName, q.Input, q.ToolUseID})
			if strings.Contains(encode(q.Input), "WAIT") {
				waitFor(log + ".answer")
			}
			return textResult(decide(q)), nil, err
		})
	mcp.AddTool(server, &mcp.Tool{Name: "spawn_agent", Description: "starts a subagent"},
		func(_ context.Context, _ *mcp.CallToolRequest, s spawn) (*mcp.CallToolResult, any, error) {
			return textResult("spawned " + s.Agent), nil, nil
		})
	if err := appendLog(log, asked{PID: os.Getpid()}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// waitFor waits until the file exists or the test has given up.
func waitFor(path string) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for range int(patience / (5 * time.Millisecond)) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		<-ticker.C
	}
}

// decide follows the instructions in the input.
func decide(q question) string {
	input := encode(q.Input)
	switch {
	case strings.Contains(input, "DIE"):
		os.Exit(3)
	case strings.Contains(input, "DENY"):
		return `{"behavior":"deny","message":"policy says no"}`
	case strings.Contains(input, "INTERRUPT"):
		return `{"behavior":"deny","message":"stop","interrupt":true}`
	case strings.Contains(input, "BARE"):
		return `{"behavior":"allow"}`
	case strings.Contains(input, "ASK"):
		return `{"behavior":"ask"}`
	case strings.Contains(input, "GARBAGE"):
		return `what?`
	case strings.Contains(input, "REWRITE"):
		return `{"behavior":"allow","updatedInput":{"command":"echo rewritten > rewritten.txt"}}`
	}
	return `{"behavior":"allow","updatedInput":` + input + `}`
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func appendLog(path string, line asked) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(encode(line) + "\n"); err != nil {
		return err
	}
	return file.Close()
}

func encode(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(data)
}
