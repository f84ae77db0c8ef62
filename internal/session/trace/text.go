package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Text formats the trace of a session as a tree:
//
//	Session: 2026-01-02-refactor-auth
//	Duration: 12,847ms
//
//	Execution Trace:
//	├─ [primary] claude-sonnet-4 (8,234ms) ✓ · 5,100 tokens
//	│  ├─ [code-reviewer] code-reviewer (2,156ms) ✓ · 2,847 tokens
//	│  └─ [documentation-writer] documentation-writer (470ms) ✗ Error: Timeout
//
// took is the duration of the session. The duration of a running agent is counted until now.
func Text(session string, took time.Duration, entries []Entry, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Session: %s\nDuration: %sms\n\nExecution Trace:\n", session, thousands(took.Milliseconds()))
	if len(entries) == 0 {
		b.WriteString("(no agent has run)\n")
	}
	for _, n := range Tree(entries) {
		n.write(&b, "├─ ", "│  ", now)
	}
	return b.String()
}

// write writes an agent's line after prefix, and the lines of its children after below.
func (n *Node) write(b *strings.Builder, prefix, below string, now time.Time) {
	b.WriteString(prefix + n.line(now) + "\n")
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			child.write(b, below+"└─ ", below+"   ", now)
		} else {
			child.write(b, below+"├─ ", below+"│  ", now)
		}
	}
}

func (n *Node) line(now time.Time) string {
	role, label := n.AgentName, n.AgentName
	switch {
	case n.Reviewer != "":
		role = "reviewer"
	case len(n.ParentChain) <= primary && n.ID == "":
		role, label = "primary", cmp.Or(n.Model, n.AgentName)
	}
	took := n.DurationMS
	if n.Status == "running" {
		took = now.Sub(n.SpawnedAt).Milliseconds()
	}
	line := fmt.Sprintf("[%s] %s (%sms) %s", role, label, thousands(took), n.mark())
	if n.Tokens > 0 {
		line += " · " + thousands(n.Tokens) + " tokens"
	}
	return line
}

// mark returns the agent's result.
func (n *Node) mark() string {
	switch {
	case n.Status == "running":
		return "…"
	case n.Failed():
		return "✗ Error: " + cmp.Or(n.Error, n.Status)
	}
	return "✓"
}

// thousands formats a number with commas between groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(max(n, 0), 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
