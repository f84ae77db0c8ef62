// Package tool defines the tools that agents can call, through coven's MCP server or
// in coven's own loop. A Registry holds the tools of one agent; ToProvider converts them to the
// format of a model API.
package tool

import (
	"context"
	"encoding/json"
)

// Tool is a tool that an agent can call.
type Tool struct {
	Kind
	Category    string // one of Categories
	Source      string // where it comes from: Builtin, or the path of its file
	Description string // for the model
	Schema      json.RawMessage
	// ReadOnly means that calls change nothing, so that an agent CLI may run them concurrently.
	ReadOnly bool
	// Call runs the tool. The result and the text of an error are for the model.
	Call func(ctx context.Context, arguments json.RawMessage) (string, error)
}

type (
	progressKey struct{}
	begunKey    struct{}
)

// WithBegun returns a context for which Begun calls begun.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun lets the next call start before this one has ended. An agent's calls start in the
// order of its requests.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}

// WithProgress returns a context for which Progress calls report.
func WithProgress(ctx context.Context, report func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports the progress of a running tool to its caller.
func Progress(ctx context.Context, text string) {
	if report, ok := ctx.Value(progressKey{}).(func(string)); ok {
		report(text)
	}
}
