package fakeapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of a request.
type Kind string

// The kinds of request.
const (
	KindTurn  Kind = "turn"  // a turn of a conversation, including one answered with a scripted failure
	KindSide  Kind = "side"  // a small internal request of the CLI, such as one for a title; consumes no turn
	KindCount Kind = "count" // count_tokens
	KindOther Kind = "other" // anything else, including HEAD /
)

// Request is one recorded request.
type Request struct {
	Kind   Kind              `json:"kind"`
	Method string            `json:"method"`
	Path   string            `json:"path"` // including the query
	Header map[string]string `json:"header,omitempty"`
	Time   time.Time         `json:"time"`

	// Conversation and Turn are the indexes of the played turn, or -1.
	Conversation int `json:"conversation"`
	Turn         int `json:"turn"`
	// Status is the HTTP status of the response, or 0 before it starts.
	Status int `json:"status"`

	Model    string    `json:"model,omitempty"`
	Stream   bool      `json:"stream"`
	System   string    `json:"system,omitempty"` // all system blocks, joined by newlines
	Messages []Message `json:"messages,omitempty"`
	Tools    []string  `json:"tools,omitempty"` // names, in the order of the request

	asksUsage bool // the stream must report the usage
}

// Message is one message of a request.
type Message struct {
	Role    string  `json:"role"`
	Content []Block `json:"content"`
}

// Block is one content block. The fields that are set depend on Type.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`   // thinking
	ID        string          `json:"id,omitempty"`          // tool_use
	Name      string          `json:"name,omitempty"`        // tool_use
	Input     json.RawMessage `json:"input,omitempty"`       // tool_use
	ToolUseID string          `json:"tool_use_id,omitempty"` // tool_result
	IsError   bool            `json:"is_error,omitempty"`    // tool_result
	Result    string          `json:"result,omitempty"`      // tool_result; its text blocks, joined
}

// ownWords lists the prefixes of texts that CLIs add to the user's text: reminders and
// descriptions of the environment.
func ownWords() []string {
	return []string{"<system-reminder>", "This is the Qwen Code. We are setting up the context", "<environment_context>", "# AGENTS.md instructions"}
}

// Text returns all text of the message except the CLI's additions.
func (m Message) Text() string {
	var texts []string
	for _, block := range m.Content {
		own := func(start string) bool { return strings.HasPrefix(block.Text, start) }
		if block.Type == "text" && !slices.ContainsFunc(ownWords(), own) {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// recordedHeaders lists the headers that a test may check. They include no credentials.
func recordedHeaders() []string {
	return []string{"Anthropic-Version", "Anthropic-Beta", "Content-Type", "User-Agent", "X-Stainless-Retry-Count"}
}

func readRequest(r *http.Request, decode func(*Request, []byte) error) (Request, error) {
	request := Request{
		Kind: KindOther, Method: r.Method, Path: r.URL.RequestURI(), Time: time.Now(),
		Header: map[string]string{}, Conversation: -1, Turn: -1,
	}
	for _, name := range recordedHeaders() {
		if value := r.Header.Get(name); value != "" {
			request.Header[name] = value
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return request, fmt.Errorf("read request: %w", err)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return request, nil
	}
	return request, decode(&request, body)
}

// wireRequest is the part of a Messages request that the fake reads.
type wireRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func (r *Request) decode(body []byte) error {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	r.Model, r.Stream = wire.Model, wire.Stream
	r.System = textOf(decodeBlocks(wire.System))
	for _, message := range wire.Messages {
		r.Messages = append(r.Messages, Message{Role: message.Role, Content: decodeBlocks(message.Content)})
	}
	for _, tool := range wire.Tools {
		r.Tools = append(r.Tools, tool.Name)
	}
	return nil
}

// decodeBlocks decodes content, which may be a string or blocks.
func decodeBlocks(raw json.RawMessage) []Block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []Block{{Type: "text", Text: text}}
	}
	var wire []struct {
		Block
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &wire) != nil {
		return nil
	}
	blocks := make([]Block, 0, len(wire))
	for _, block := range wire {
		if len(block.Content) > 0 {
			block.Result = textOf(decodeBlocks(block.Content))
		}
		blocks = append(blocks, block.Block)
	}
	return blocks
}

func textOf(blocks []Block) string {
	var texts []string
	for _, block := range blocks {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}
