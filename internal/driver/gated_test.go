package driver

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// picky is a gate that refuses input with "evil" and modifies input with "modify".
type picky struct {
	Gate
	asked []string // IDs
	ended []string
}

func (p *picky) Decide(_ context.Context, call gate.Call) gate.Verdict {
	p.asked = append(p.asked, call.ID)
	switch {
	case strings.Contains(string(call.Input), "evil"):
		return gate.Verdict{Message: "no"}
	case strings.Contains(string(call.Input), "modify"):
		return gate.Verdict{Allow: true, Input: json.RawMessage(`{"a":"modified"}`)}
	}
	return gate.Verdict{Allow: true}
}

func (p *picky) Ended(id string) { p.ended = append(p.ended, id) }

// Each call of a coven tool is decided once, either when the CLI asks or when it makes the call. A decision
// counts for one call.
func TestToolsOfACLIThatNeedNotAsk(t *testing.T) {
	keeper := &picky{}
	r := newRun(Job{Gate: keeper})
	close(r.started)
	look := r.gated([]tool.Tool{{Kind: tool.Kind{Name: "look"}, Call: func(_ context.Context, arguments json.RawMessage) (string, error) { return string(arguments), nil }}})[0]
	ask := func(arguments string) error {
		return r.asks.permit(provider.ToolCall{ID: "c", Name: provider.CallOwn + "look", Input: json.RawMessage(arguments)})
	}
	for i, step := range []struct {
		ask       bool
		arguments string
		want      string // result or error; empty for a request that is allowed
		decided   int    // total number of decisions
	}{
		{false, `{"a":1,"b":2}`, `{"a":1,"b":2}`, 1},
		{false, `"evil"`, "no", 2},
		{false, `"modify"`, `{"a":"modified"}`, 3},
		{true, `{"a":1,"b":2}`, "", 4},
		{true, `{"a":1,"b":2}`, "", 5},
		{false, `{"b":2, "a":1}`, `{"b":2, "a":1}`, 5},
		{false, `{"a":1,"b":2}`, `{"a":1,"b":2}`, 5},
		{false, `{"a":1,"b":2}`, `{"a":1,"b":2}`, 6},
		{true, `"evil"`, "no", 7},
		{false, `"evil"`, "no", 7},
		{true, `"modify"`, `the user modified the parameters; make the call again with {"a":"modified"}`, 8},
		{false, `"modify"`, `the user modified the parameters; make the call again with {"a":"modified"}`, 8},
	} {
		var got string
		var err error
		if step.ask {
			err = ask(step.arguments)
		} else {
			got, err = look.Call(t.Context(), json.RawMessage(step.arguments))
		}
		if err != nil {
			got = err.Error()
		}
		if got != step.want || len(keeper.asked) != step.decided {
			t.Errorf("step %d: %q, want %q; %d decisions, want %d", i, got, step.want, len(keeper.asked), step.decided)
		}
	}
	if asked, ended := strings.Join(keeper.asked, " "), strings.Join(keeper.ended, " "); asked != "tool 1 tool 2 tool 3 c c tool 4 c c" || ended != "tool 1 tool 2 tool 3 tool 4" {
		t.Errorf("decided: %s; ended: %s", asked, ended)
	}
	r.command.Gated = true
	if got, err := look.Call(t.Context(), json.RawMessage(`"evil"`)); got != `"evil"` || err != nil {
		t.Errorf("a CLI whose calls all pass the gate: %q, %v", got, err)
	}
	for range 2 * maxOpen {
		r.answered.add(gate.Call{Tool: provider.CallOwn + "look", Input: json.RawMessage(strings.Repeat("x", len(r.answered.allowed)+1))}, nil)
	}
	if n := len(r.answered.allowed); n > maxOpen {
		t.Errorf("%d answers are kept", n)
	}
}
