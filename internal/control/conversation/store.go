// Package conversation stores the messages of coven's own loop in a session, writes the working memory of
// an agent, lists messages with their tokens, and forks a conversation into another session.
package conversation

import (
	"fmt"

	"github.com/coven-run/coven/internal/driver/chat"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Store stores the conversations of a step in its session. It implements the store of package chat.
type Store struct {
	Session *session.Session
	Path    string // of the step, or of a subagent
}

// Load implements chat.Store.
func (s Store) Load(id string) ([]chat.Message, error) {
	stored, err := s.Session.Conversation(id)
	if err != nil {
		return nil, err
	}
	var all []chat.Message
	for _, m := range stored {
		all = append(all, messageOf(m))
	}
	return all, nil
}

func messageOf(m session.Message) chat.Message {
	message := chat.Message{ID: m.ID, Message: model.Message{Role: model.Role(m.Role), Parts: partsOf(m.Parts)}}
	if u := m.Usage; u != nil {
		message.Used = provider.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	return message
}

func partsOf(stored []session.Part) (parts []model.Part) {
	for _, p := range stored {
		if part := partOf(p); part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

func partOf(p session.Part) model.Part {
	switch p.Type {
	case "text":
		return model.Text{Text: p.Text}
	case "reasoning":
		return model.Reasoning{Text: p.Text, Signature: p.Signature}
	case "tool_call":
		return provider.ToolCall{ID: p.ID, Name: p.Tool, Input: p.Input}
	case typeSummary:
		return chat.Summary{Text: p.Text, Up: p.ID, Count: p.Messages, Memory: p.Memory}
	case "tool_result":
		return provider.ToolResult{ID: p.ID, Text: p.Text, IsError: p.Error}
	}
	return nil
}

// Types of parts that are not content of a message.
const (
	typeSummary  = "summary"
	typeSnapshot = "snapshot"
)

// Append implements chat.Store.
func (s Store) Append(id string, m chat.Message) error {
	stored := session.Message{ID: m.ID, Role: string(m.Role)}
	if u := m.Used; u != (provider.Usage{}) {
		stored.Usage = &session.Used{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens}
	}
	for _, part := range m.Parts {
		var p session.Part
		switch e := part.(type) {
		case model.Text:
			p.Type, p.Text = "text", e.Text
		case model.Reasoning:
			p.Type, p.Text, p.Signature = "reasoning", e.Text, e.Signature
		case provider.ToolCall:
			p.Type, p.ID, p.Tool, p.Input = "tool_call", e.ID, e.Name, e.Input
		case chat.Summary:
			p.Type, p.Text, p.ID, p.Messages, p.Memory = typeSummary, e.Text, e.Up, e.Count, e.Memory
		case provider.ToolResult:
			p.Type, p.ID, p.Text, p.Error = "tool_result", e.ID, e.Text, e.IsError
		default:
			return fmt.Errorf("%T is not a part of a message", part)
		}
		stored.Parts = append(stored.Parts, p)
	}
	return s.Session.Record(s.Path, id, stored)
}
