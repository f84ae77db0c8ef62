package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/tool"
)

// ServeOptions configures Serve.
type ServeOptions struct {
	Version   string
	In        io.Reader
	Out       io.Writer
	Tools     []tool.Tool
	Inquiries []Inquiry
}

// Inquiry is a tool that asks the user of the calling program. The program shows the question to the
// user; no model answers it.
type Inquiry struct {
	tool.Tool // Call is not used
	// Question returns the question for the user.
	Question func(arguments json.RawMessage) (string, error)
	// Answer returns the result for the agent.
	Answer func(Reply) (string, error)
}

// Reply is a user's answer. Anything but an approval counts as a refusal.
type Reply struct {
	Approved bool
	Reason   string
}

var (
	errNoUser  = errors.New("this program cannot ask its user for coven")
	errUnasked = errors.New("this is not the answer to a question that is open")
)

// Serve runs an MCP server for a program that coven did not start. It returns when the program closes In.
func Serve(ctx context.Context, o ServeOptions) error {
	server := sdk.NewServer(&sdk.Implementation{Name: Name, Version: o.Version}, nil)
	for _, t := range o.Tools {
		server.AddTool(describe(t), func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			arguments, err := checked(t, req)
			if err != nil {
				return failure(err.Error()), nil
			}
			return result(t.Call(reporting(ctx, req), arguments)), nil
		})
	}
	open := &inquiries{asked: map[string][]byte{}}
	for _, q := range o.Inquiries {
		server.AddTool(describe(q.Tool), func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return open.call(q, req), nil
		})
	}
	err := server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(o.In), Writer: unclosed{o.Out}, MaxLineLength: maxLine})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// checked returns the arguments of a call if they match the tool's schema.
func checked(t tool.Tool, req *sdk.CallToolRequest) (json.RawMessage, error) {
	arguments := req.Params.Arguments
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	return arguments, t.Check(arguments)
}

func result(text string, err error) *sdk.CallToolResult {
	if err != nil {
		return failure(err.Error())
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// inquiries are the open questions. A program makes a call twice: the first call returns the question, and
// the second one has the answer. An answer counts once, and only for the same arguments.
type inquiries struct {
	mu    sync.Mutex
	asked map[string][]byte // arguments, by the request state that the second call must have
}

// question is the name of a call's only question.
const question = "approval"

func (i *inquiries) call(q Inquiry, req *sdk.CallToolRequest) *sdk.CallToolResult {
	arguments, err := checked(q.Tool, req)
	if err != nil {
		return failure(err.Error())
	}
	if req.Params.RequestState == "" && len(req.Params.InputResponses) == 0 {
		return i.ask(q, arguments, req.ClientCapabilities())
	}
	i.mu.Lock()
	before, ok := i.asked[req.Params.RequestState]
	delete(i.asked, req.Params.RequestState)
	i.mu.Unlock()
	answer, is := req.Params.InputResponses[question].(*sdk.ElicitResult)
	if !ok || !is || !bytes.Equal(before, arguments) {
		return failure(errUnasked.Error())
	}
	reason, _ := answer.Content["reason"].(string)
	return result(q.Answer(Reply{Approved: answer.Action == "accept", Reason: reason}))
}

// maxAsked limits the open questions, so that a program that never answers cannot fill the memory.
const maxAsked = 100

// ask returns a question. Since the revision 2026-07-28 of the protocol, each request names the capabilities of the program.
func (i *inquiries) ask(q Inquiry, arguments json.RawMessage, program *sdk.ClientCapabilities) *sdk.CallToolResult {
	if program == nil || program.Elicitation == nil {
		return failure(errNoUser.Error())
	}
	text, err := q.Question(arguments)
	if err != nil {
		return failure(err.Error())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.asked) >= maxAsked {
		clear(i.asked)
	}
	state := rand.Text()
	i.asked[state] = bytes.Clone(arguments)
	return &sdk.CallToolResult{
		RequestState: state,
		InputRequests: sdk.InputRequestMap{question: &sdk.ElicitParams{
			Message: text,
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"reason": map[string]any{"type": "string", "description": "what the agent is told in addition"}},
			},
		}},
	}
}
