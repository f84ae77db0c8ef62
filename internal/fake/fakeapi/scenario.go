package fakeapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gopkg.in/yaml.v3"
)

// Scenario contains all answers of the fake model.
type Scenario struct {
	Conversations []Conversation `yaml:"conversations"`
	// Models are listed by GET /v1/models.
	Models []Model `yaml:"models"`
	// Meanings are the components of the vectors of POST /v1/embeddings.
	Meanings []Meaning `yaml:"meanings"`
}

// Model is one model of the API. All models answer in the same way.
type Model struct {
	ID     string `yaml:"id"`
	Window int    `yaml:"window"` // tokens; 0 to omit it
}

// Conversation is one scripted conversation. A request belongs to the first
// conversation whose Match occurs in the text of its first user message. An
// empty Match matches every request.
type Conversation struct {
	Match string `yaml:"match"`
	Turns []Turn `yaml:"turns"`
}

// Turn is one answer of the model.
type Turn struct {
	// Hold is a name to wait for before anything of this answer is sent.
	Hold string `yaml:"hold"`
	// Delay is waited for after Hold, before anything is sent.
	Delay time.Duration `yaml:"delay"`
	// Fail answers the first requests for this turn with errors, in order.
	Fail []Failure `yaml:"fail"`
	// Thinking comes first, as a signed block of the Messages API or as reasoning_content.
	Thinking string `yaml:"thinking"`
	// Break is the type of an error to send instead of the end, such as overloaded_error.
	Break string `yaml:"break"`
	// Text precedes Chunks, and both precede Tools.
	Text   string  `yaml:"text"`
	Chunks []Chunk `yaml:"chunks"`
	Tools  []Tool  `yaml:"tools"`
	// StopReason defaults to tool_use if there are Tools, else to end_turn.
	StopReason string `yaml:"stop_reason"`
	// Usage defaults to 10 input and 5 output tokens.
	Usage Usage `yaml:"usage"`
	// Limits are sent with the answer.
	Limits Limits `yaml:"limits"`
	// Cut drops the connection in the middle of the last block.
	Cut bool `yaml:"cut"`

	tellsUsage bool // requested by the client; needed for Chat Completions
}

// Chunk is a piece of text. By default it is a separate content block, which the CLI
// shows as soon as it is complete. With Join it is another delta of the previous
// block, which the CLI shows only when that block ends.
type Chunk struct {
	Text string `yaml:"text"`
	Hold string `yaml:"hold"` // wait for this name before the chunk, after flushing everything before it
	Join bool   `yaml:"join"`
}

// Tool is one tool call.
type Tool struct {
	Name  string         `yaml:"name"`
	Input map[string]any `yaml:"input"`
}

// Usage is the reported usage of the turn, in tokens.
type Usage struct {
	Input      int `yaml:"input"` // without cached tokens
	Output     int `yaml:"output"`
	CacheRead  int `yaml:"cache_read"`
	CacheWrite int `yaml:"cache_write"`
}

// Failure answers Times requests (defaults to 1) with an HTTP status of at least
// 400. RetryAfter, in whole seconds, is sent as the Retry-After header.
type Failure struct {
	Status     int           `yaml:"status"`
	Times      int           `yaml:"times"`
	RetryAfter time.Duration `yaml:"retry_after"`
	Limits     Limits        `yaml:"limits"`
	Text       string        `yaml:"text"` // the message; default: that it is scripted
}

// Limits are sent as the headers that describe a subscriber's
// account limits: anthropic-ratelimit-unified-*.
type Limits struct {
	Status string        `yaml:"status"` // allowed, allowed_warning, rejected; empty for no headers at all
	Reset  time.Duration `yaml:"reset"`  // from now; 0 to omit it
	Claim  string        `yaml:"claim"`  // five_hour, seven_day, ...
}

// Load reads a scenario from a YAML file.
func Load(path string) (Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario: %w", err)
	}
	scenario, err := Parse(data)
	if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", path, err)
	}
	return scenario, nil
}

// Parse parses a scenario in YAML. Unknown keys are errors.
func Parse(data []byte) (Scenario, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	var scenario Scenario
	if err := decoder.Decode(&scenario); err != nil && !errors.Is(err, io.EOF) {
		return Scenario{}, fmt.Errorf("parse scenario: %w", err)
	}
	return scenario, scenario.check()
}

// check rejects obvious mistakes.
func (s Scenario) check() error {
	for i, conversation := range s.Conversations {
		for j, turn := range conversation.Turns {
			if err := turn.check(); err != nil {
				return fmt.Errorf("conversation %d, turn %d: %w", i, j, err)
			}
		}
	}
	return nil
}

func (t Turn) check() error {
	for _, tool := range t.Tools {
		if tool.Name == "" {
			return errors.New("tool without a name")
		}
	}
	for _, failure := range t.Fail {
		if failure.Status < 400 || failure.Status > 599 {
			return fmt.Errorf("fail status %d is not an HTTP error", failure.Status)
		}
		if failure.RetryAfter%time.Second != 0 {
			return fmt.Errorf("retry_after %s is not in whole seconds", failure.RetryAfter)
		}
	}
	return nil
}
