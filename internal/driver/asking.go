package driver

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/internal/gate"
)

// maxNotes limits the messages of coven that wait for the agent.
const maxNotes = 16

// askingGate stops the clocks of the agent while a person is asked about a call, and tells the agent what
// this person modified: the answer to the CLI has no place for it.
type askingGate struct {
	Gate
	run *run
}

// Decide implements Gate.
func (g askingGate) Decide(ctx context.Context, call gate.Call) gate.Verdict {
	v := g.Gate.Decide(gate.WithClocks(ctx, func() func() {
		<-g.run.started // only the agent asks
		g.run.child.Pause()
		return g.run.child.Resume
	}), call)
	if v.Allow && v.Input != nil {
		select {
		case g.run.notes <- Message{By: "coven", Text: fmt.Sprintf("The parameters were modified by the user: your call of %s ran with %s", call.Tool, v.Input)}:
		default: // the record has it
		}
	}
	return v
}
