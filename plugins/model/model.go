// Package model is the contract of model plugins: one turn of a model API.
//
// A model runs no tools and keeps no conversation: coven runs the agent's loop and
// hands the whole conversation over each time. It may be asked for several
// conversations at the same time.
package model

import (
	"context"
	"encoding/json"

	"github.com/coven-run/coven/plugins/provider"
)

// Model speaks to one model API.
type Model interface {
	// Turn asks the model once and tells emit what it says, as it says it; the last
	// event is End. An error of emit ends the turn: coven wants no more. An error of
	// Turn says that the API could not be asked; a refusal for a rate limit is the
	// event provider.Limit and an End with the reason Limited.
	Turn(ctx context.Context, request Request, emit func(Event) error) error
}

// Request is a conversation that the model is to go on with.
type Request struct {
	Model     string // full ID
	System    string
	Messages  []Message // the oldest first; the last is the user's
	Tools     []Tool
	MaxTokens int // most tokens to answer; 0: what the model allows
}

// Role says whose words a message has.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is one piece of a message: Text, Reasoning, provider.ToolCall of an
// assistant, or provider.ToolResult of a user.
type Part any

// Tool is what the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input
}

// Event is what a model says: Text and Reasoning in pieces, provider.ToolCall
// whole, provider.Limit, and End last.
type Event any

// Text is what the model says, or a piece of it.
type Text struct{ Text string }

// Reasoning is what the model thinks, or a piece of it.
type Reasoning struct {
	Text      string
	Signature string // opaque; some APIs want it back unchanged
}

// Reason says why a turn ended.
type Reason string

// The reasons.
const (
	Done     Reason = "end"     // the model has said all
	ForTools Reason = "tools"   // it waits for the results of its calls
	Length   Reason = "length"  // MaxTokens, or the model's own bound
	Refusal  Reason = "refusal" // the API would not answer this
	Limited  Reason = "limit"   // a rate limit or an overload
)

// End is the last event of a turn.
type End struct {
	Reason Reason
	Usage  provider.Usage
}
