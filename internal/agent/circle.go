package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// longestRound is how many calls a circle may have.
const longestRound = 4

// evidenceBytes is how much of a result is kept as evidence.
const evidenceBytes = 2 << 10

// circle watches for an agent that makes the same calls with the same results
// over and over. Calls count in the order in which they were asked for, not in
// that of their results: of several at once, any may end first.
type circle struct {
	most    int // rounds; 0: any number
	open    []*made
	history []made // the last ones
}

// made is a call and what came of it.
type made struct {
	id     string
	call   string // the tool and its input
	tool   string
	input  json.RawMessage
	result string
	failed bool
	done   bool
}

func (m made) same(other made) bool {
	return m.call == other.call && m.result == other.result && m.failed == other.failed
}

// call notes a call that the agent asked for.
func (c *circle) call(e provider.ToolCall) {
	if c.most > 0 {
		c.open = append(c.open, &made{id: e.ID, call: e.Name + " " + canonical(e.Input), tool: e.Name, input: e.Input})
	}
}

// canonical is JSON in which the order of keys and the spaces between them make
// no difference.
func canonical(input json.RawMessage) string {
	var value any
	if json.Unmarshal(input, &value) != nil {
		return string(input)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return string(input)
	}
	return string(text)
}

// result notes what came of a call, and returns the loop that this closes, or
// nil.
func (c *circle) result(e provider.ToolResult) *event.Loop {
	for _, m := range c.open {
		if m.id == e.ID {
			m.result, m.failed, m.done = e.Text, e.IsError, true
		}
	}
	for len(c.open) > 0 && c.open[0].done {
		c.history = append(c.history, *c.open[0])
		c.open = c.open[1:]
		if loop := c.closed(); loop != nil {
			return loop
		}
	}
	return nil
}

// forget begins anew.
func (c *circle) forget() { c.open, c.history = nil, nil }

// closed is the loop that the last calls make, or nil.
func (c *circle) closed() *event.Loop {
	c.history = c.history[max(0, len(c.history)-longestRound*c.most):]
	for round := 1; round <= longestRound; round++ {
		if calls := c.last(round); calls != nil {
			c.forget()
			return &event.Loop{Calls: calls, Count: c.most}
		}
	}
	return nil
}

// last is the round of so many calls with which the history ends often enough.
func (c *circle) last(round int) []event.LoopCall {
	begin := len(c.history) - round*c.most
	if begin < 0 {
		return nil
	}
	for i := begin + round; i < len(c.history); i++ {
		if !c.history[i].same(c.history[i-round]) {
			return nil
		}
	}
	var calls []event.LoopCall
	for _, m := range c.history[len(c.history)-round:] {
		calls = append(calls, m.evidence())
	}
	return calls
}

// evidence is the call for the record. An input that is too long becomes the text
// of its beginning.
func (m made) evidence() event.LoopCall {
	input := m.input
	if len(input) > evidenceBytes {
		input, _ = json.Marshal(beginning(string(input))) // of a string it cannot fail
	}
	return event.LoopCall{Tool: m.tool, Input: input, Result: beginning(m.result), Error: m.failed}
}

// beginning is a text that is not too long, or what of it is not: "begins so…".
func beginning(text string) string {
	if len(text) <= evidenceBytes {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:evidenceBytes-len("…")], "") + "…"
}

// loopText says in one line what an agent that works in dir did over and over.
func loopText(l event.Loop, dir string) string {
	var names []string
	for _, c := range l.Calls {
		names = append(names, gate.Summary(gate.Call{Tool: c.Tool, Input: c.Input}, dir))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(l.Calls[len(l.Calls)-1].Result), "\n")
	return oneline.Of(fmt.Sprintf("%s: %d times in a row with the same result: %s", strings.Join(names, ", then "), l.Count, first))
}
