// Package streamjson parses the output format stream-json of agent CLIs, as far as Claude Code and Qwen
// Code agree on it.
package streamjson

import (
	"encoding/json"
	"strings"

	"github.com/coven-run/coven/plugins/provider"
)

// Line contains the common keys of a line.
type Line struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`

	// system init
	SessionID  string   `json:"session_id"`
	Model      string   `json:"model"`
	Tools      []string `json:"tools"`
	MCPServers []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"mcp_servers"`
}

// Started returns the event of the line that begins a run: system init.
func (l Line) Started() provider.Started {
	s := provider.Started{Conversation: l.SessionID, Model: l.Model, Tools: l.Tools}
	for _, server := range l.MCPServers {
		if server.Status == "failed" {
			s.FailedServers = append(s.FailedServers, server.Name)
		}
	}
	return s
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// Blocks returns the events in the content of the line's message. There are none in plain text, which is a
// message from coven.
func (l Line) Blocks(content json.RawMessage) []provider.Event {
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	var events []provider.Event
	for _, b := range blocks {
		switch {
		case b.Type == "text" && l.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			events = append(events, provider.Text{Text: b.Text})
		case b.Type == "thinking" && b.Thinking != "":
			events = append(events, provider.Reasoning{Text: b.Thinking})
		case b.Type == "tool_use":
			events = append(events, provider.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input})
		case b.Type == "tool_result":
			events = append(events, provider.ToolResult{ID: b.ToolUseID, Text: contentText(b.Content), IsError: b.IsError})
		}
	}
	return events
}

// contentText returns the text of a tool result, which is a string or a list of text blocks.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []block
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
