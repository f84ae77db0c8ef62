// Package mcp is coven's MCP server: what an agent CLI reaches of coven while
// it works. Its one tool so far decides about the agent's tool calls.
//
// The CLI starts a bridge (Bridge) as a server over standard input and output;
// the bridge carries the bytes to a socket of the coven that runs the agent.
// There is one socket per run of an agent, in a directory that only the user
// can enter. Who connects is told by the kernel (peer credentials) and must be
// part of the agent's own process tree and hold the run's token: what a caller
// says of itself counts for nothing.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/gate"
)

// Name is the name of the server, and ApproveTool that of the tool that
// decides about a call.
const (
	Name        = "coven"
	ApproveTool = "approve"
)

// maxLine bounds one message, in bytes: a call to write a file holds the file.
const maxLine = 64 << 20

// decider answers tool calls.
type decider interface {
	Decide(ctx context.Context, call gate.Call) gate.Verdict
}

// approval is what the agent CLI sends about a call.
type approval struct {
	ToolName  string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// answer is what the agent CLI takes: allow needs the input back.
type answer struct {
	Behavior     string          `json:"behavior"`
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// newServer returns an MCP server whose calls d decides.
func newServer(version string, d decider) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: Name, Version: version}, nil)
	server.AddTool(&sdk.Tool{
		Name:        ApproveTool,
		Description: "Decides whether a tool call may run. The agent CLI calls it; agents do not.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}},"required":["tool_name","input"]}`),
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text, err := json.Marshal(approve(ctx, d, req.Params.Arguments))
		if err != nil {
			return nil, fmt.Errorf("encode the answer: %w", err)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
	})
	return server
}

func approve(ctx context.Context, d decider, arguments json.RawMessage) answer {
	var a approval
	if err := json.Unmarshal(arguments, &a); err != nil || a.ToolUseID == "" {
		return answer{Behavior: "deny", Message: "coven could not parse the request"}
	}
	v := d.Decide(ctx, gate.Call{ID: a.ToolUseID, Tool: a.ToolName, Input: a.Input})
	if !v.Allow {
		return answer{Behavior: "deny", Message: v.Message}
	}
	return answer{Behavior: "allow", UpdatedInput: a.Input}
}
