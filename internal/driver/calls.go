package driver

import (
	"github.com/coven-run/coven/plugins/provider"
)

// calls are the tool calls of a CLI that makes requests: it may report them before, after, or not at
// all, more than once, and so it may with the results of those that were refused.
type calls struct {
	reported map[string]bool // calls, by ID
	refused  map[string]bool // calls whose result coven has reported
}

func newCalls() calls { return calls{reported: map[string]bool{}, refused: map[string]bool{}} }

// repeats reports whether an event reports a call, or the refusal of one, again.
func (c calls) repeats(e provider.Event) (again bool) {
	switch e := e.(type) {
	case provider.ToolCall:
		again = c.reported[e.ID]
		c.reported[e.ID] = true
	case provider.ToolResult:
		again = e.IsError && c.refused[e.ID]
	}
	return again
}

// takeRequest accepts a request of the CLI, and reports the calls that it is about unless the CLI
// did.
func (r *run) takeRequest(e provider.Asked) error {
	for _, call := range e.Calls {
		if err := r.deliver(call); err != nil {
			return err
		}
	}
	if r.spent != nil { // the CLI goes on after its last answer
		r.overspent()
	}
	r.asks.take(e)
	return nil
}

// refuse reports the result of a call that was refused: not every CLI does.
func (r *run) refuse(id string, why error) {
	r.handling.Lock()
	defer r.handling.Unlock()
	if err := r.deliver(provider.ToolResult{ID: id, Text: why.Error(), IsError: true}); err != nil {
		r.child.Stop(err)
	}
	r.calls.refused[id] = true
}

// finish records that the agent returned a result.
func (r *run) finish() {
	select {
	case <-r.resulted:
	default:
		close(r.resulted)
	}
}
