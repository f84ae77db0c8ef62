// Package model defines the contract of model plugins, which run single turns of a
// model API.
//
// A model plugin runs no tools and stores no conversation: coven runs the agent loop
// and passes the whole conversation to each turn. A model plugin may be called for
// several conversations concurrently.
package model

import (
	"context"
	"encoding/json"

	"github.com/coven-run/coven/plugins/provider"
)

// Model is a client of one model API.
type Model interface {
	// Turn sends one request to the model and streams the answer to emit. The last
	// event is End. If emit returns an error, the turn must end. If Turn returns an
	// error, the answer is incomplete: pluginerr.ErrTransient if the same request may
	// succeed soon, and pluginerr.ErrLogin if the API refuses the credential. A rate limit
	// is not an error: emit provider.Limit and then an End with reason Limited.
	Turn(ctx context.Context, request Request, emit func(Event) error) error
}

// Lister is an optional extension of Model that lists the models of its API. A plugin that does not
// implement it answers pluginerr.ErrUnsupported.
type Lister interface {
	// Models returns the models of the API. Without a connection, a plugin may return a built-in list.
	Models(ctx context.Context) ([]Info, error)
}

// Info describes a model. A zero value means that the field is unknown.
type Info struct {
	ID        string
	Window    int     // context window: tokens of the request and the answer together
	MaxOutput int     // limit for one answer, in tokens
	Prices    *Prices // nil if unknown
}

// Prices are US dollars per million tokens.
type Prices struct {
	Input, Output, CacheRead, CacheWrite float64
}

// DefaultWindow is the context window, in tokens, that coven assumes if it is unknown. Most locally served
// models have at least this window.
const DefaultWindow = 32_768

// Request is a conversation for the model to continue.
type Request struct {
	Model     string // full ID
	System    string
	Messages  []Message // oldest first; the last one is from the user
	Tools     []Tool
	MaxTokens int // limit for the answer; 0 for the model's own limit
}

// Role is the author of a message.
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

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of its input
}

// Event is an event of a turn: Text and Reasoning in fragments, complete
// provider.ToolCall values, provider.Limit, and a final End.
type Event any

// Text is text of the model, or a fragment of it.
type Text struct{ Text string }

// Reasoning is reasoning of the model, or a fragment of it.
type Reasoning struct {
	Text      string
	Signature string // opaque; some APIs require it unchanged in the next turn
}

// Reason is why a turn ended.
type Reason string

// The reasons.
const (
	Done     Reason = "end"     // the answer is complete
	ForTools Reason = "tools"   // the model waits for tool results
	Length   Reason = "length"  // MaxTokens or the model's own limit was reached
	Refusal  Reason = "refusal" // the API declined to answer
	Limited  Reason = "limit"   // a rate limit or an overload
)

// End is the last event of a turn.
type End struct {
	Reason Reason
	Usage  provider.Usage
}
