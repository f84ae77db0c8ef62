package agent

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// meter reckons what a run has used so far: what its results say, and what the
// answers of the model API since then say of themselves.
type meter struct {
	settled provider.Usage
	turns   int
	answers map[string]provider.Usage
}

// spent takes what an answer used, and says whether the answer is a new one.
func (m *meter) spent(e provider.Spent) bool {
	if m.answers == nil {
		m.answers = map[string]provider.Usage{}
	}
	_, known := m.answers[e.ID]
	m.answers[e.ID] = e.Usage
	if !known {
		m.turns++
	}
	return !known
}

// settle replaces what the answers said by what results say.
func (m *meter) settle(total provider.Usage) {
	m.settled = total
	clear(m.answers)
}

func (m *meter) total() event.Usage {
	sum := m.settled
	for _, used := range m.answers {
		sum = sum.Add(used)
	}
	return event.Usage{
		Input: sum.InputTokens, Output: sum.OutputTokens,
		CacheRead: sum.CacheReadTokens, CacheWrite: sum.CacheWriteTokens, Cost: sum.CostUSD, Turns: m.turns,
	}
}
