package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// line is an event in an agent's log, which has one JSON object per line.
type line struct {
	Type         string          `json:"type"` // started, text, reasoning, tool_call, tool_result, acknowledged, usage, limit, result
	ID           string          `json:"id,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Model        string          `json:"model,omitempty"`
	Tools        []string        `json:"tools,omitempty"`
	Text         string          `json:"text,omitempty"`
	Tool         string          `json:"tool,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Error        bool            `json:"error,omitempty"`
	More         bool            `json:"more,omitempty"`
	Turns        int             `json:"turns,omitempty"`
	Usage        *provider.Usage `json:"usage,omitempty"`
}

func lineOf(e provider.Event) line {
	switch e := e.(type) {
	case provider.Started:
		return line{Type: "started", Conversation: e.Conversation, Model: e.Model, Tools: e.Tools}
	case provider.Text:
		return line{Type: "text", Text: e.Text}
	case provider.Reasoning:
		return line{Type: "reasoning", Text: e.Text}
	case provider.ToolCall:
		return line{Type: "tool_call", ID: e.ID, Tool: e.Name, Input: e.Input}
	case provider.ToolResult:
		return line{Type: "tool_result", ID: e.ID, Text: e.Text, Error: e.IsError}
	case provider.Acknowledged:
		return line{Type: "acknowledged", ID: e.ID}
	case provider.Spent:
		return line{Type: "usage", ID: e.ID, Model: e.Model, Usage: &e.Usage, More: e.More}
	case provider.Limit:
		return line{Type: "limit", Text: e.Reason}
	case provider.Result:
		return line{Type: "result", Text: e.Text, Turns: e.Turns, Usage: &e.Usage}
	}
	return line{}
}

func (l line) event() provider.Event {
	used := provider.Usage{}
	if l.Usage != nil {
		used = *l.Usage
	}
	switch l.Type {
	case "started":
		return provider.Started{Conversation: l.Conversation, Model: l.Model, Tools: l.Tools}
	case "text":
		return provider.Text{Text: l.Text}
	case "reasoning":
		return provider.Reasoning{Text: l.Text}
	case "tool_call":
		return provider.ToolCall{ID: l.ID, Name: l.Tool, Input: l.Input}
	case "tool_result":
		return provider.ToolResult{ID: l.ID, Text: l.Text, IsError: l.Error}
	case "acknowledged":
		return provider.Acknowledged{ID: l.ID}
	case "usage":
		return provider.Spent{ID: l.ID, Model: l.Model, Usage: used, Done: true, More: l.More}
	case "limit":
		return provider.Limit{Reason: l.Text}
	case "result":
		return provider.Result{OK: true, Text: l.Text, Turns: l.Turns, Usage: used}
	}
	return nil
}

type transcript struct{ to io.Writer }

func (t transcript) write(e provider.Event) error {
	text, err := json.Marshal(lineOf(e))
	if err != nil {
		return fmt.Errorf("encode an event of the agent: %w", err)
	}
	if t.to == nil {
		return nil
	}
	if _, err := t.to.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("write the log of the agent: %w", err)
	}
	return nil
}

// Log parses the logs of coven's own agents, as a provider parses those of its CLI.
type Log struct{}

// Command implements provider.Provider. It fails because there is no CLI.
func (Log) Command(context.Context, provider.Request) (provider.Command, error) {
	return provider.Command{}, fmt.Errorf("coven itself is the agent: %w", pluginerr.ErrUnsupported)
}

// Parse implements provider.Provider.
func (Log) Parse(_ context.Context, lines []byte) (events []provider.Event, err error) {
	for text := range bytes.Lines(lines) {
		var l line
		if json.Unmarshal(text, &l) != nil {
			continue
		}
		if e := l.event(); e != nil {
			events = append(events, e)
		}
	}
	return events, nil
}

// Message implements provider.Provider. It fails because there is no CLI.
func (Log) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, pluginerr.ErrUnsupported
}
