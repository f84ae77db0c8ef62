package driver

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// maxRound limits the number of different calls in a detected loop.
const maxRound = 4

const (
	// evidenceBytes limits the part of an input or result that is kept as evidence.
	evidenceBytes = 2 << 10
	// maxOpen limits the calls without a result that are remembered: a CLI may never report the result.
	maxOpen = 1000
)

// LoopDetector detects an agent that repeats the same calls with the same results. Calls are
// ordered by their requests, not by their results, because concurrent calls may end in
// any order.
type LoopDetector struct {
	maxRounds int // 0 means no limit
	open      []*pastCall
	history   []pastCall // the most recent calls
}

// NewLoopDetector returns a detector that reports a loop after maxRounds identical rounds. Zero disables it.
func NewLoopDetector(maxRounds int) *LoopDetector { return &LoopDetector{maxRounds: maxRounds} }

// pastCall is a call and its result. Long data is kept as a digest with its beginning as evidence.
type pastCall struct {
	id        string
	call      digest // of the tool and its input
	result    digest
	tool      string
	input     json.RawMessage // evidence
	beginning string          // of the result
	failed    bool
	done      bool
}

type digest = [sha256.Size]byte

func (m pastCall) same(other pastCall) bool {
	return m.call == other.call && m.result == other.result && m.failed == other.failed
}

// Call records a call that the agent requested.
func (c *LoopDetector) Call(e provider.ToolCall) {
	if c.maxRounds == 0 {
		return
	}
	if len(c.open) == maxOpen {
		c.open = slices.Delete(c.open, 0, 1)
	}
	c.open = append(c.open, &pastCall{id: e.ID, call: sha256.Sum256([]byte(e.Name + " " + gate.Canonical(e.Input))), tool: e.Name, input: evidence(e.Input)})
}

// Result records the result of a call, and returns the loop that it completes, or nil.
func (c *LoopDetector) Result(e provider.ToolResult) *event.Loop {
	for _, m := range c.open {
		if m.id == e.ID {
			m.result, m.beginning, m.failed, m.done = sha256.Sum256([]byte(e.Text)), beginning(e.Text), e.IsError, true
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

// Forget discards the history.
func (c *LoopDetector) Forget() { c.open, c.history = nil, nil }

// closed returns the loop formed by the last calls, or nil.
func (c *LoopDetector) closed() *event.Loop {
	c.history = c.history[max(0, len(c.history)-maxRound*c.maxRounds):]
	for round := 1; round <= maxRound; round++ {
		if calls := c.last(round); calls != nil {
			c.Forget()
			return &event.Loop{Calls: calls, Count: c.maxRounds}
		}
	}
	return nil
}

// last returns the last round of the given number of calls, if the history ends with maxRounds
// repetitions of it.
func (c *LoopDetector) last(round int) []event.LoopCall {
	begin := len(c.history) - round*c.maxRounds
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
		calls = append(calls, event.LoopCall{Tool: m.tool, Input: m.input, Result: m.beginning, Error: m.failed})
	}
	return calls
}

// evidence returns the input of a call for the event log, truncated if it is long.
func evidence(input json.RawMessage) json.RawMessage {
	if len(input) > evidenceBytes {
		input, _ = json.Marshal(beginning(string(input))) // cannot fail for a string
	}
	return input
}

// beginning truncates a long text and appends "…".
func beginning(text string) string {
	if len(text) <= evidenceBytes {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(strings.Clone(text[:evidenceBytes-len("…")]), "") + "…"
}

// LoopText describes the repeated calls of an agent in dir in one line.
func LoopText(l event.Loop, dir string) string {
	var names []string
	for _, c := range l.Calls {
		names = append(names, gate.Summary(gate.Call{Tool: c.Tool, Input: c.Input}, dir))
	}
	first, _, _ := strings.Cut(strings.TrimSpace(l.Calls[len(l.Calls)-1].Result), "\n")
	return oneline.Of(fmt.Sprintf("%s: %d times in a row with the same result: %s", strings.Join(names, ", then "), l.Count, first))
}
