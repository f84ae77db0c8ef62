package driver

import (
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

// meter adds up the usage of a run: the usage in its results plus the usage of later
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

// begin returns the answer that e refers to. If e begins a new answer, it also returns the
// previous one unless that is done.
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
// whether an answer, this or the previous one, has ended.
func (m *meter) spent(e provider.Spent) (started, ended bool) {
	turns := m.turns
	now, before := m.begin(e)
	if now == nil {
		return false, false // does not refer to an answer
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
	if e.Done && (!now.done || grew) { // some CLIs report a running sum
		now.done, ended = true, true
	}
	return m.turns > turns, ended
}

// largest returns the maximum of each number: the reported usage of an answer only grows.
func largest(a, b provider.Usage) provider.Usage {
	return provider.Usage{
		InputTokens:      max(a.InputTokens, b.InputTokens),
		OutputTokens:     max(a.OutputTokens, b.OutputTokens),
		CacheReadTokens:  max(a.CacheReadTokens, b.CacheReadTokens),
		CacheWriteTokens: max(a.CacheWriteTokens, b.CacheWriteTokens),
		CostUSD:          max(a.CostUSD, b.CostUSD),
	}
}

// Upper bounds for the usage of an answer or a stretch of work. They keep absurd reports from
// overflowing the sum.
const (
	maxTokens = int64(1e12)
	maxUSD    = 1e6
)

// plausible clamps usage to the valid range.
func plausible(u provider.Usage) provider.Usage {
	tokens := func(n int64) int64 { return min(max(n, 0), maxTokens) }
	return provider.Usage{
		InputTokens: tokens(u.InputTokens), OutputTokens: tokens(u.OutputTokens),
		CacheReadTokens: tokens(u.CacheReadTokens), CacheWriteTokens: tokens(u.CacheWriteTokens),
		CostUSD: min(max(u.CostUSD, 0), maxUSD),
	}
}

// applyResult replaces the usage of answers by that of the result, unless the result
// reports less: a CLI may omit interrupted answers, which cost money too.
func (m *meter) applyResult(total provider.Usage) {
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
