package driver

import (
	"encoding/json"

	"github.com/coven-run/coven/plugins/provider"
)

// calls are the tool calls of a CLI that makes requests: it may report them before, after, or not at
// all, more than once, and so it may with the results of those that were refused.
type calls struct {
	reported map[string]bool // calls, by ID
	refused  map[string]bool // calls that were refused: coven has reported their result
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
	for i, call := range e.Calls {
		e.Calls[i] = placed(call, r.job.Dir)
		if err := r.deliver(e.Calls[i]); err != nil {
			return err
		}
	}
	if r.spent != nil { // the CLI goes on after its last answer
		r.overspent()
	}
	r.asks.take(e)
	return nil
}

// placed returns a call of a shell as one in the worktree, dir: a command that runs elsewhere goes there first.
func placed(call provider.ToolCall, dir string) provider.ToolCall {
	var in struct{ Command, Dir string }
	if call.Name != provider.CallBash || json.Unmarshal(call.Input, &in) != nil || in.Dir == "" || in.Command == "" {
		return call
	}
	call.Input, _ = json.Marshal(map[string]string{"command": commandIn(provider.RunCommand{Command: in.Command, Dir: in.Dir}, dir)}) // strings can be encoded
	return call
}

// refuse reports the results of the calls of a request that was refused: not every CLI does. The CLI may run none
// of them, also of those that the gate allowed.
func (r *run) refuse(calls []provider.ToolCall, why error) {
	r.handling.Lock()
	defer r.handling.Unlock()
	for _, call := range calls {
		if err := r.deliver(provider.ToolResult{ID: call.ID, Text: why.Error(), IsError: true}); err != nil {
			r.child.Stop(err)
		}
		r.calls.refused[call.ID] = true
	}
}

// allow notes that the CLI may run the calls of a request, which may have been refused before.
func (r *run) allow(calls []provider.ToolCall) {
	r.handling.Lock()
	defer r.handling.Unlock()
	for _, call := range calls {
		delete(r.calls.refused, call.ID)
	}
}

// finish records that the agent returned a result.
func (r *run) finish() {
	select {
	case <-r.resulted:
	default:
		close(r.resulted)
	}
}
