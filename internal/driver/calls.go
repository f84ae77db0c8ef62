package driver

import (
	"encoding/json"

	"github.com/coven-run/coven/internal/text/strictjson"
	"github.com/coven-run/coven/plugins/provider"
)

// calls tracks the tool calls of a CLI that makes requests. Such a CLI may report a call before or
// after the request, several times, or never, and the same is true for the results of refused calls.
type calls struct {
	reported map[string]bool // by call ID
	refused  map[string]bool // by call ID; coven has reported their results
	spawns   map[string]bool // IDs of calls that start agents, whose failures are reported by themselves
}

func newCalls() calls {
	return calls{reported: map[string]bool{}, refused: map[string]bool{}, spawns: map[string]bool{}}
}

// repeats reports whether an event repeats an already reported call or refusal.
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

// takeRequest accepts a request of the CLI and reports its calls, unless the CLI has reported them.
func (r *run) takeRequest(e provider.Asked) error {
	for i, call := range e.Calls {
		e.Calls[i] = placed(call, r.job.Dir)
		if err := r.deliver(e.Calls[i]); err != nil {
			return err
		}
	}
	if r.spent != nil { // the CLI continues after its last answer
		r.overspent()
	}
	r.asks.accept(e)
	return nil
}

// placed rewrites a shell call that runs outside the worktree dir so that it changes the directory first.
func placed(call provider.ToolCall, dir string) provider.ToolCall {
	in, err := strictjson.Object(call.Input)
	if err != nil { // the gate refuses it
		return call
	}
	command, _ := in["command"].(string)
	at, _ := in["dir"].(string)
	if call.Name != provider.CallBash || at == "" || command == "" {
		return call
	}
	call.Input, _ = json.Marshal(map[string]string{"command": commandIn(provider.RunCommand{Command: command, Dir: at}, dir)}) // strings can be encoded
	return call
}

// refuse reports results for all calls of a refused request, because not every CLI does. The CLI may
// run none of the calls, not even those that the gate allowed.
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

// allow records that the CLI may run the calls of a request, even if they were refused before.
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
