package driver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// play makes calls; "a1" is the call a with the result 1.
func play(c *LoopDetector, calls string) *event.Loop {
	for i, call := range strings.Fields(calls) {
		id := fmt.Sprint(i)
		c.Call(provider.ToolCall{ID: id, Name: "Bash", Input: json.RawMessage(`{"command":"` + call[:1] + `"}`)})
		if loop := c.Result(provider.ToolResult{ID: id, Text: call[1:]}); loop != nil {
			return loop
		}
	}
	return nil
}

func TestCircle(t *testing.T) {
	times := strings.Repeat
	tests := []struct {
		name, calls string
		round       int // 0 for no loop
	}{
		{"four of a kind", times("a1 ", 4), 0},
		{"five of a kind", times("a1 ", 5), 1},
		{"another result in between", times("a1 ", 4) + "a2 " + times("a1 ", 4), 0},
		{"another call in between", times("a1 ", 4) + "b1 " + times("a1 ", 4), 0},
		{"each with another result", "a1 a2 a3 a4 a5 a6 a7 a8 a9", 0},
		{"two, four times", times("a1 b1 ", 4) + "a1", 0},
		{"two, five times", times("a1 b1 ", 5), 2},
		{"three, with one alike", times("a1 a1 b1 ", 5), 3},
		{"four", "x1 y1 " + times("a1 b1 c1 d1 ", 5), 4},
		{"four, one of which differs once", times("a1 b1 c1 d1 ", 2) + "a1 b1 c1 d2 " + times("a1 b1 c1 d1 ", 4), 0},
		{"five are too many", times("a1 b1 c1 d1 e1 ", 9), 0},
		{"work and then a circle", "a1 b2 c3 a2 b1 " + times("a1 ", 5), 1},
	}
	for _, tt := range tests {
		loop := play(NewLoopDetector(5), tt.calls)
		switch {
		case loop == nil && tt.round == 0:
		case loop == nil || len(loop.Calls) != tt.round || loop.Count != 5:
			t.Errorf("%s: %+v", tt.name, loop)
		}
	}
	if loop := play(NewLoopDetector(0), times("a1 ", 99)); loop != nil {
		t.Errorf("switched off: %+v", loop)
	}
}

// Concurrent calls count in the order in which they were requested, not in the order in which they end. The
// order of JSON keys does not matter.
func TestCircleOfCallsAtOnce(t *testing.T) {
	c := NewLoopDetector(3)
	for i := range 3 {
		a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
		c.Call(provider.ToolCall{ID: a, Name: "Read", Input: json.RawMessage(`{"x":1,"y":2}`)})
		c.Call(provider.ToolCall{ID: b, Name: "Read", Input: json.RawMessage(`{"x":3}`)})
		if i == 1 {
			a, b = b, a
		}
		results := map[string]string{"a": "one", "b": "two"}
		c.Result(provider.ToolResult{ID: a, Text: results[a[:1]]})
		loop := c.Result(provider.ToolResult{ID: b, Text: results[b[:1]]})
		if (loop != nil) != (i == 2) {
			t.Errorf("after %d rounds: %+v", i+1, loop)
		}
	}
}

// The evidence is bounded, and a person's message resets the history.
func TestCircleEvidence(t *testing.T) {
	c := NewLoopDetector(2)
	long := strings.Repeat("é", 4000)
	input, err := json.Marshal(map[string]string{"content": long})
	if err != nil {
		t.Fatal(err)
	}
	call := func() *event.Loop {
		c.Call(provider.ToolCall{ID: "1", Name: "Write", Input: input})
		return c.Result(provider.ToolResult{ID: "1", Text: "x" + long, IsError: true})
	}
	first := call()
	c.Forget()
	if second := call(); first != nil || second != nil {
		t.Errorf("after a person spoke: %+v, %+v", first, second)
	}
	loop := call()
	if loop == nil || len(loop.Calls[0].Input) > 2*evidenceBytes || len(loop.Calls[0].Result) > evidenceBytes || !loop.Calls[0].Error {
		t.Errorf("%+v", loop)
	}
}

// Calls without results do not fill the memory, even if they are many and long. A call that is still
// remembered counts.
func TestCircleOfCallsWithoutResults(t *testing.T) {
	c := NewLoopDetector(3)
	input := json.RawMessage(`{"command":"` + strings.Repeat("x", 10*evidenceBytes) + `"}`)
	for i := range 3 * maxOpen {
		c.Call(provider.ToolCall{ID: fmt.Sprint(i), Name: "bash", Input: input})
	}
	kept := 0
	for _, m := range c.open {
		kept += len(m.input)
	}
	if len(c.open) != maxOpen || kept > 2*maxOpen*evidenceBytes {
		t.Errorf("%d calls with %d bytes are kept", len(c.open), kept)
	}
	for i := 2 * maxOpen; i < 2*maxOpen+3; i++ {
		loop := c.Result(provider.ToolResult{ID: fmt.Sprint(i), Text: "same"})
		if (loop != nil) != (i == 2*maxOpen+2) {
			t.Errorf("after call %d: %+v", i, loop)
		}
	}
}

// The record omits lines with the prefix, however they are split into writes.
func TestTranscriptLeavesOut(t *testing.T) {
	const text = "{\"type\":\"a\"}\n{\"part\":1}\n{\n\n{\"part\":2}\n{\"pa\n{\"part\":\n x{\"part\":3}\n{\"part\":4}\nend"
	const want = "{\"type\":\"a\"}\n{\n\n{\"pa\n x{\"part\":3}\nend"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		record := &transcript{to: &out, partial: []byte(`{"part":`)}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if wrote, err := record.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
			rest = rest[n:]
		}
		record.end()
		if out.String() != want {
			t.Fatalf("in pieces of %d:\n%q, want\n%q", size, out.String(), want)
		}
	}
	var out bytes.Buffer
	record := &transcript{to: &out, partial: []byte(`{"part":`)}
	_, _ = record.Write([]byte(`{"par`))
	record.end()
	if out.String() != `{"par` {
		t.Errorf("a line that was cut off: %q", out.String())
	}
}
