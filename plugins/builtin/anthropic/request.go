package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// The API requires a limit for each answer, in tokens. If the request has none, it is the model's limit,
// but at most maxTokens, which leaves room in the context. For an unknown model, it is newTokens for
// Anthropic's server, and otherwise otherTokens, because a server rejects a limit that exceeds its context.
const (
	maxTokens   = 64_000
	newTokens   = 32_000
	otherTokens = model.DefaultWindow / 4
)

// redacted is the prefix of the signature of thinking that the API has encrypted.
const redacted = "redacted:"

// body is the body of a request.
type body struct {
	MaxTokens int       `json:"max_tokens"`
	Messages  []message `json:"messages"`
	Model     string    `json:"model"`
	System    []*text   `json:"system,omitempty"`
	Thinking  *thinking `json:"thinking,omitempty"`
	Tools     []tool    `json:"tools,omitempty"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Content []any      `json:"content"` // blocks
	Role    model.Role `json:"role"`
}

// mark asks the API to cache the request up to this block.
type mark struct {
	Type string `json:"type"`
}

func newMark() *mark { return &mark{Type: "ephemeral"} }

type thinking struct {
	Display string `json:"display"`
	Type    string `json:"type"`
}

type tool struct {
	InputSchema json.RawMessage `json:"input_schema"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Cache       *mark           `json:"cache_control,omitempty"`
}

// Blocks of messages.
type (
	text struct {
		Text  string `json:"text"`
		Cache *mark  `json:"cache_control,omitempty"`
		Type  string `json:"type"`
	}
	thought struct {
		Signature string `json:"signature"`
		Thinking  string `json:"thinking"`
		Type      string `json:"type"`
	}
	hiddenThought struct {
		Data string `json:"data"`
		Type string `json:"type"`
	}
	call struct {
		ID    string          `json:"id"`
		Input json.RawMessage `json:"input"`
		Name  string          `json:"name"`
		Type  string          `json:"type"`
	}
	result struct {
		CallID  string  `json:"tool_use_id"`
		IsError bool    `json:"is_error"`
		Cache   *mark   `json:"cache_control,omitempty"`
		Content []*text `json:"content,omitempty"`
		Type    string  `json:"type"`
	}
)

// bodyOf returns the body of the request for a turn.
func bodyOf(c endpoint.Connection, r model.Request) body {
	id := c.ModelID(r.Model)
	b := body{Model: id, MaxTokens: r.MaxTokens, Messages: messages(r.Messages), Tools: tools(r.Tools), Stream: true}
	if r.MaxTokens <= 0 {
		b.MaxTokens = limitOf(c, id)
	}
	if strings.TrimSpace(r.System) != "" {
		b.System = []*text{{Text: r.System, Cache: newMark(), Type: "text"}}
	}
	if c.Adaptive(id) {
		b.Thinking = &thinking{Display: "summarized", Type: "adaptive"}
	}
	b.cache()
	return b
}

func limitOf(c endpoint.Connection, id string) int {
	switch most := c.MaxOutput(id); {
	case most > 0:
		return min(most, maxTokens)
	case c.IsStandard(c.Getenv):
		return newTokens
	}
	return otherTokens
}

// cache marks the positions at which the next request will begin to differ: after the tools, and after the
// last two messages of the user. At the earlier of the two, this request finds the part that the previous
// request stored, even after a turn with many calls.
func (b body) cache() {
	if last := len(b.Tools) - 1; last >= 0 {
		b.Tools[last].Cache = newMark()
	}
	marked := 0
	for _, m := range slices.Backward(b.Messages) {
		if m.Role != model.User || marked == 2 {
			continue
		}
		switch last := m.Content[len(m.Content)-1].(type) {
		case *text:
			last.Cache = newMark()
			marked++
		case *result:
			last.Cache = newMark()
			marked++
		}
	}
}

func messages(all []model.Message) (converted []message) {
	for _, m := range all {
		var results, content []any
		for _, part := range m.Parts {
			if r, ok := part.(provider.ToolResult); ok {
				results = append(results, resultOf(r))
			} else if block := blockOf(part); block != nil {
				content = append(content, block)
			}
		}
		content = append(results, content...) // the API requires results first
		if len(content) > 0 {
			converted = append(converted, message{Role: m.Role, Content: content})
		}
	}
	return converted
}

// blockOf converts a part of a message. It returns nil if the API does not accept the part: an empty text,
// or unsigned thinking, which is from another server.
func blockOf(part model.Part) any {
	switch p := part.(type) {
	case model.Text:
		if strings.TrimSpace(p.Text) != "" {
			return &text{Text: p.Text, Type: "text"}
		}
	case model.Reasoning:
		if data, ok := strings.CutPrefix(p.Signature, redacted); ok {
			return hiddenThought{Data: data, Type: "redacted_thinking"}
		}
		if p.Signature != "" {
			return thought{Signature: p.Signature, Thinking: p.Text, Type: "thinking"}
		}
	case provider.ToolCall:
		return call{ID: p.ID, Input: endpoint.Object(p.Input), Name: p.Name, Type: "tool_use"}
	}
	return nil
}

func resultOf(r provider.ToolResult) *result {
	block := &result{CallID: r.ID, IsError: r.IsError, Type: "tool_result"}
	if strings.TrimSpace(r.Text) != "" { // an empty text is rejected
		block.Content = []*text{{Text: r.Text, Type: "text"}}
	}
	return block
}

func tools(all []model.Tool) (converted []tool) {
	for _, t := range all {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		converted = append(converted, tool{Name: t.Name, Description: t.Description, InputSchema: schema})
	}
	return converted
}
