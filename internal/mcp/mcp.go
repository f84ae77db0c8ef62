// Package mcp is coven's MCP server for agent CLIs. One of its tools decides about the agent's
// tool calls; the others are tools for the agent (package tool).
//
// The CLI starts a bridge (Bridge) as a server on standard input and output. The
// bridge copies the bytes to a socket of the coven process that runs the agent. Each
// run of an agent has its own socket, in a directory that only the user can enter. The
// kernel identifies the caller (peer credentials), which must be in the agent's
// process tree and have the run's token. No other claim of the caller is trusted. For a process of
// another agent of this coven, or one with a wrong token, every tool returns only an explanation.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool"
)

// Name is the name of the server, and ApproveTool the name of the tool that decides about calls.
const (
	Name        = "coven"
	ApproveTool = "approve"
)

// maxLine limits the size of a message in bytes. A call that writes a file contains the whole file, and
// no model writes a file of this size in one call.
const maxLine = 4 << 20

// decider decides about tool calls.
type decider interface {
	Decide(ctx context.Context, call gate.Call) gate.Verdict
}

// approval is the agent CLI's request for a decision.
type approval struct {
	ToolName  string          `json:"tool_name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
}

// answer is the answer to the agent CLI. An answer with "allow" must contain the input.
type answer struct {
	Behavior     string          `json:"behavior"`
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`
	Message      string          `json:"message,omitempty"`
}

// newServer returns an MCP server for one connection. Its approve tool asks d; tools are for the agent.
func newServer(version string, d decider, tools []tool.Tool, order *calls) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: Name, Version: version}, nil)
	server.AddTool(&sdk.Tool{
		Name:        ApproveTool,
		Description: "Decides whether a tool call may run. The agent CLI calls it; agents do not.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"tool_name":{"type":"string"},"input":{"type":"object"},"tool_use_id":{"type":"string"}},"required":["tool_name","input"]}`),
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		text, err := json.Marshal(approve(order.await(ctx, req), d, req.Params.Arguments))
		if err != nil {
			return nil, fmt.Errorf("encode the answer: %w", err)
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}}, nil
	})
	for _, t := range tools {
		server.AddTool(describe(t), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			ctx = order.await(ctx, req)
			arguments, err := checked(t, req)
			if err != nil {
				return failure(err.Error()), nil
			}
			return result(t.Call(reporting(ctx, req), arguments)), nil
		})
	}
	return server
}

// newRefusal returns an MCP server whose tools return only an explanation.
func newRefusal(version, why string, tools []tool.Tool) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: Name, Version: version}, nil)
	for _, t := range tools {
		server.AddTool(describe(t), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return failure(why), nil
		})
	}
	return server
}

func describe(t tool.Tool) *sdk.Tool {
	return &sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly}}
}

func failure(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// reporting returns a context that sends progress notifications to the caller of the tool, if it asked
// for them.
func reporting(ctx context.Context, req *sdk.CallToolRequest) context.Context {
	token := req.Params.GetProgressToken()
	if token == nil {
		return ctx
	}
	var mu sync.Mutex
	done := 0.0
	return tool.WithProgress(ctx, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		done++
		// A caller that cannot be notified loses only the progress.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: text, Progress: done})
	})
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
	if v.Input != nil { // a person modified it
		a.Input = v.Input
	}
	return answer{Behavior: "allow", UpdatedInput: a.Input}
}
