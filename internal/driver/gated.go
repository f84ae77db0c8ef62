package driver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// gated wraps tools so that their calls pass the gate here if the CLI need not ask about them. Calls that
// the CLI asked about are not decided again.
func (r *run) gated(tools []tool.Tool) []tool.Tool {
	tools = slices.Clone(tools)
	for i, t := range tools {
		tools[i].Call = func(ctx context.Context, arguments json.RawMessage) (string, error) {
			<-r.started // only the agent makes calls
			if r.command.Gated {
				return t.Call(ctx, arguments)
			}
			call := gate.Call{Tool: provider.CallOwn + t.Name, Input: arguments}
			id, allowed, err := r.answered.begin(call)
			switch {
			case err != nil:
				return "", err
			case allowed:
				return t.Call(ctx, arguments)
			}
			call.ID = id
			v := r.asks.ask(call)
			defer r.gate.Ended(call.ID)
			switch {
			case !v.Allow:
				return "", errors.New(v.Message)
			case v.Input != nil:
				arguments = v.Input
			}
			return t.Call(ctx, arguments)
		}
	}
	return tools
}

// answered records decisions about coven's tools that the CLI asked for and has not used yet.
type answered struct {
	mu      sync.Mutex
	allowed map[digest]int // number of calls
	refused map[digest]error
	last    int // number of the last call without a decision
}

func newAnswered() *answered {
	return &answered{allowed: map[digest]int{}, refused: map[digest]error{}}
}

func digestOf(call gate.Call) digest {
	return sha256.Sum256([]byte(gate.ToolName(call) + " " + gate.Canonical(call.Input)))
}

// add records a decision about a call. refused is nil if the call is allowed.
func (a *answered) add(call gate.Call, refused error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := digestOf(call)
	switch {
	case !strings.HasPrefix(call.Tool, provider.CallOwn) || len(a.allowed)+len(a.refused) >= maxOpen:
	case refused != nil:
		a.refused[of] = refused
	default:
		delete(a.refused, of)
		a.allowed[of]++
	}
}

// begin looks up the decision about a call, and uses up an allowed one. A refused call returns its error. A
// call without a decision gets an ID.
func (a *answered) begin(call gate.Call) (id string, allowed bool, refused error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := digestOf(call)
	if a.allowed[of] > 0 {
		if a.allowed[of]--; a.allowed[of] == 0 {
			delete(a.allowed, of)
		}
		return "", true, nil
	}
	if a.refused[of] != nil {
		return "", false, a.refused[of]
	}
	a.last++
	return "tool " + strconv.Itoa(a.last), false, nil
}
