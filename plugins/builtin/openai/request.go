package openai

import (
	"encoding/json"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// body is the body of a request.
//
// The limit of an answer has two names. OpenAI's newer models reject max_tokens, and some other servers do
// not support max_completion_tokens, so the name depends on the server.
type body struct {
	Messages            []message     `json:"messages"`
	Model               string        `json:"model"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	StreamOptions       streamOptions `json:"stream_options"`
	Tools               []tool        `json:"tools,omitempty"`
	Stream              bool          `json:"stream"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Content   *string    `json:"content,omitempty"` // may be empty for a result
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
	Role      string     `json:"role"`
}

type toolCall struct {
	ID       string `json:"id"`
	Function struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	} `json:"function"`
	Type string `json:"type"`
}

type tool struct {
	Function function `json:"function"`
	Type     string   `json:"type"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  map[string]any `json:"parameters,omitzero"`
}

// bodyOf returns the body of the request for a turn.
func bodyOf(c endpoint.Connection, r model.Request) body {
	b := body{Model: c.ModelID(r.Model), Messages: messages(r), Tools: tools(r.Tools), StreamOptions: streamOptions{IncludeUsage: true}, Stream: true}
	if limit := max(r.MaxTokens, 0); c.IsStandard(c.Getenv) {
		b.MaxCompletionTokens = limit
	} else {
		b.MaxTokens = limit
	}
	return b
}

func said(role, text string) message { return message{Role: role, Content: &text} }

func messages(r model.Request) (converted []message) {
	if r.System != "" {
		converted = append(converted, said("system", r.System))
	}
	for _, m := range r.Messages {
		if m.Role == model.Assistant {
			converted = append(converted, assistant(m)...)
		} else {
			converted = append(converted, user(m)...)
		}
	}
	return converted
}

// user returns a message for each result of a call, followed by one with the text.
func user(m model.Message) (converted []message) {
	var texts []string
	for _, part := range m.Parts {
		switch p := part.(type) {
		case model.Text:
			texts = appendText(texts, p)
		case provider.ToolResult:
			result := said("tool", p.Text)
			result.CallID = callID(p.ID)
			converted = append(converted, result)
		}
	}
	if len(texts) > 0 {
		converted = append(converted, said("user", strings.Join(texts, "\n\n")))
	}
	return converted
}

// maxID is the maximum length of a call's ID that OpenAI accepts. IDs from other servers may be longer.
const maxID = 40

// callID returns the end of a long ID, which coven makes unique.
func callID(id string) string { return id[max(len(id)-maxID, 0):] }

func appendText(texts []string, t model.Text) []string {
	if t.Text == "" {
		return texts
	}
	return append(texts, t.Text)
}

// assistant returns an answer without its reasoning, which this API does not accept.
func assistant(m model.Message) []message {
	var texts []string
	answer := message{Role: "assistant"}
	for _, part := range m.Parts {
		switch p := part.(type) {
		case model.Text:
			texts = appendText(texts, p)
		case provider.ToolCall:
			call := toolCall{ID: callID(p.ID), Type: "function"}
			call.Function.Name, call.Function.Arguments = p.Name, string(endpoint.Object(p.Input))
			answer.ToolCalls = append(answer.ToolCalls, call)
		}
	}
	if len(texts) > 0 {
		text := strings.Join(texts, "\n\n")
		answer.Content = &text
	}
	if len(texts) == 0 && len(answer.ToolCalls) == 0 {
		return nil
	}
	return []message{answer}
}

func tools(all []model.Tool) (converted []tool) {
	for _, t := range all {
		f := function{Name: t.Name, Description: t.Description}
		_ = json.Unmarshal(t.Schema, &f.Parameters) // without a schema, the function has no parameters
		if f.Parameters["type"] == "object" && f.Parameters["properties"] == nil {
			f.Parameters["properties"] = map[string]any{} // required by OpenAI
		}
		converted = append(converted, tool{Function: f, Type: "function"})
	}
	return converted
}
