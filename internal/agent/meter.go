package agent

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// meter reckons what a run has used so far: what its results say, and what the
// answers of the model API since then say of themselves.
type meter struct {
	settled provider.Usage
	answers map[string]*answer // since the last result, by id
	last    *answer
	turns   int
	model   string
}

// answer is one answer of the model API.
type answer struct {
	used provider.Usage
	done bool // nothing more is said of it
}

// begin returns the answer that e is about, and the one before when that ends
// because e is about a new one.
func (m *meter) begin(e provider.Spent) (now, before *answer) {
	now = m.answers[e.ID]
	switch {
	case e.ID == "" || now != nil && now == m.last:
		return m.last, nil
	case now != nil:
		return now, nil
	}
	if m.answers == nil {
		m.answers = map[string]*answer{}
	}
	if m.last != nil && !m.last.done {
		before = m.last
	}
	now = &answer{}
	m.answers[e.ID], m.last = now, now
	m.turns++
	return now, before
}

// spent takes what an answer used. It reports whether an answer has started with it,
// and whether one has ended: this one, or the one before.
func (m *meter) spent(e provider.Spent) (begun, ended bool) {
	turns := m.turns
	now, before := m.begin(e)
	if now == nil {
		return false, false // about no answer
	}
	if before != nil {
		before.done, ended = true, true
	}
	now.used = largest(now.used, e.Usage)
	if e.Model != "" {
		m.model = e.Model
	}
	if e.Done && !now.done {
		now.done, ended = true, true
	}
	return m.turns > turns, ended
}

// largest is, of each number, the larger one: what is said of an answer grows.
func largest(a, b provider.Usage) provider.Usage {
	return provider.Usage{
		InputTokens:      max(a.InputTokens, b.InputTokens),
		OutputTokens:     max(a.OutputTokens, b.OutputTokens),
		CacheReadTokens:  max(a.CacheReadTokens, b.CacheReadTokens),
		CacheWriteTokens: max(a.CacheWriteTokens, b.CacheWriteTokens),
		CostUSD:          max(a.CostUSD, b.CostUSD),
	}
}

// settle takes what results say in place of what answers said, unless it is less:
// a CLI leaves out what was cut off, and was paid for.
func (m *meter) settle(total provider.Usage) {
	m.settled, m.last = largest(total, m.sum()), nil
	clear(m.answers)
}

func (m *meter) sum() provider.Usage {
	sum := m.settled
	for _, a := range m.answers {
		sum = sum.Add(a.used)
	}
	return sum
}

func (m *meter) total() event.Usage {
	sum := m.sum()
	return event.Usage{
		Input: sum.InputTokens, Output: sum.OutputTokens,
		CacheRead: sum.CacheReadTokens, CacheWrite: sum.CacheWriteTokens, Cost: sum.CostUSD,
		Turns: m.turns, Model: m.model,
	}
}
