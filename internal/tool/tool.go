// Package tool says what a tool of coven is that agents can call: through coven's MCP server, or
// in coven's own loop. A Registry holds the tools of one agent; ToProvider describes them in the
// form that a model API expects.
package tool

import (
	"context"
	"encoding/json"
)

// Tool is one tool.
type Tool struct {
	Name        string // without a prefix: spawn_agent
	ID          string // in the lists of definitions: fs_read; empty: the same as Name
	Category    string // one of Categories
	Permission  string // that a call needs: file.read; empty: none
	Source      string // where it comes from: Builtin, or the path of its file
	Description string // for the model
	Schema      json.RawMessage
	// ReadOnly means that calls change nothing, so that an agent CLI may run several at once.
	ReadOnly bool
	// Call runs the tool. The text is for the model, also that of an error.
	Call func(ctx context.Context, arguments json.RawMessage) (string, error)
}

type (
	progressKey struct{}
	begunKey    struct{}
)

// WithBegun returns a context in which Begun calls begun.
func WithBegun(ctx context.Context, begun func()) context.Context {
	return context.WithValue(ctx, begunKey{}, begun)
}

// Begun lets the next call begin although this one has not ended: calls of an agent begin in the
// order of its requests.
func Begun(ctx context.Context) {
	if begun, ok := ctx.Value(begunKey{}).(func()); ok {
		begun()
	}
}

// WithProgress returns a context in which Progress calls report.
func WithProgress(ctx context.Context, report func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress tells the caller of a tool that it still works, and on what.
func Progress(ctx context.Context, text string) {
	if report, ok := ctx.Value(progressKey{}).(func(string)); ok {
		report(text)
	}
}
