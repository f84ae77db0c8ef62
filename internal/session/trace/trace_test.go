package trace_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/session/trace"
)

// C-131: the sample metadata.json of the design document is formatted as its sample tree.
func TestSample(t *testing.T) {
	data, err := os.ReadFile("testdata/metadata.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		SessionID      string        `json:"session_id"`
		StartedAt      time.Time     `json:"started_at"`
		CompletedAt    time.Time     `json:"completed_at"`
		ExecutionTrace []trace.Entry `json:"execution_trace"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	want := `Session: 2025-01-20-refactor-auth
Duration: 12,847ms

Execution Trace:
├─ [primary] claude-sonnet-4 (8,234ms) ✓
│  ├─ [code-reviewer] code-reviewer (2,156ms) ✓
│  ├─ [test-generator] test-generator (1,987ms) ✓
│  └─ [documentation-writer] documentation-writer (470ms) ✗ Error: Timeout
`
	if got := trace.Text(m.SessionID, m.CompletedAt.Sub(m.StartedAt), m.ExecutionTrace, m.CompletedAt); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Four levels, two primary agents with the same name, a running agent, and tokens.
func TestDepth(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entry := func(id, parent, path string, chain ...string) trace.Entry {
		return trace.Entry{
			TraceID: id, ParentTraceID: parent, Path: path, AgentName: chain[len(chain)-1], ParentChain: chain,
			SpawnedAt: start, DurationMS: 1000, Status: "completed", Tokens: 1234567,
		}
	}
	entries := []trace.Entry{
		entry("s", "", "one#1", "user", "build"),
		entry("a", "s", "one#1", "user", "build", "a"),
		entry("b", "a", "one#1", "user", "build", "a", "b"),
		entry("c", "b", "one#1", "user", "build", "a", "b", "c"),
		entry("s", "", "two#1", "user", "build"),
		entry("d", "s", "one#1", "user", "build", "a"), // child of the first one
		entry("e", "s", "two#1", "user", "build", "a"),
	}
	entries[6].Status = "running"
	want := `Session: s
Duration: 999ms

Execution Trace:
├─ [primary] build (1,000ms) ✓ · 1,234,567 tokens
│  ├─ [a] a (1,000ms) ✓ · 1,234,567 tokens
│  │  └─ [b] b (1,000ms) ✓ · 1,234,567 tokens
│  │     └─ [c] c (1,000ms) ✓ · 1,234,567 tokens
│  └─ [a] a (1,000ms) ✓ · 1,234,567 tokens
├─ [primary] build (1,000ms) ✓ · 1,234,567 tokens
│  └─ [a] a (2,500ms) … · 1,234,567 tokens
`
	if got := trace.Text("s", 999*time.Millisecond, entries, start.Add(2500*time.Millisecond)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// C-76: a session without agents has a trace, too.
func TestEmpty(t *testing.T) {
	want := "Session: s\nDuration: 0ms\n\nExecution Trace:\n(no agent has run)\n"
	if got := trace.Text("s", 0, nil, time.Time{}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
