package driver

import (
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// meter adds up the usage of a run: the usage in its results, and that of later
// answers of the model API.
type meter struct {
	settled provider.Usage
	answers map[string]*answer // since the last result, by ID
	last    *answer
	turns   int
	model   string
}

// answer is one answer of the model API.
type answer struct {
	used provider.Usage
	done bool // its usage is final
}

// begin returns the answer that e is about, and also the previous answer if e begins a
// new one.
func (m *meter) begin(e provider.Spent) (now, before *answer) {
	if e.Next {
		e.ID = fmt.Sprintf("answer %d", m.turns+1)
	}
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

// spent adds the usage of an answer. It reports whether e begins an answer, and
// whether an answer has ended: this one or the previous one.
func (m *meter) spent(e provider.Spent) (started, ended bool) {
	turns := m.turns
	now, before := m.begin(e)
	if now == nil {
		return false, false // not about an answer
	}
	if before != nil {
		before.done, ended = true, true
	}
	more := largest(now.used, plausible(e.Usage))
	grew := more != now.used
	now.used = more
	if e.Model != "" {
		m.model = e.Model
	}
	if e.Done && (!now.done || grew) { // some CLIs report a sum so far
		now.done, ended = true, true
	}
	return m.turns > turns, ended
}

// largest returns the larger of each number: the reported usage of an answer grows.
func largest(a, b provider.Usage) provider.Usage {
	return provider.Usage{
		InputTokens:      max(a.InputTokens, b.InputTokens),
		OutputTokens:     max(a.OutputTokens, b.OutputTokens),
		CacheReadTokens:  max(a.CacheReadTokens, b.CacheReadTokens),
		CacheWriteTokens: max(a.CacheWriteTokens, b.CacheWriteTokens),
		CostUSD:          max(a.CostUSD, b.CostUSD),
	}
}

// The most that an answer, or a stretch of work, can use. The sum of what a CLI reports beyond it could
// be less than nothing.
const (
	maxTokens = int64(1e12)
	maxUSD    = 1e6
)

// plausible returns usage without what nobody can use.
func plausible(u provider.Usage) provider.Usage {
	tokens := func(n int64) int64 { return min(max(n, 0), maxTokens) }
	return provider.Usage{
		InputTokens: tokens(u.InputTokens), OutputTokens: tokens(u.OutputTokens),
		CacheReadTokens: tokens(u.CacheReadTokens), CacheWriteTokens: tokens(u.CacheWriteTokens),
		CostUSD: min(max(u.CostUSD, 0), maxUSD),
	}
}

// settle replaces the usage of answers by that of the result, unless the result
// reports less: a CLI omits interrupted answers, which cost money too.
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
