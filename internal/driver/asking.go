package driver

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
)

// maxNotes limits the messages from coven that wait to be sent to the agent.
const maxNotes = 16

// askingGate pauses the agent's time limits while a person is asked about a call. If the person
// modifies the call, it sends the agent a message: the protocol of the CLI cannot carry the change.
type askingGate struct {
	Gate
	run *run
}

// Decide implements Gate.
func (g askingGate) Decide(ctx context.Context, call gate.Call) gate.Verdict {
	v := g.Gate.Decide(gate.WithClocks(ctx, func() func() {
		<-g.run.started // only the agent makes calls
		g.run.child.Pause()
		return g.run.child.Resume
	}), call)
	if v.Allow && v.Input != nil {
		select {
		case g.run.notes <- event.Message{By: "coven", Text: fmt.Sprintf("The parameters were modified by the user: your call of %s ran with %s", call.Tool, v.Input)}:
		default: // the event log has the change
		}
	}
	return v
}
