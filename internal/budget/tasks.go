package budget

import (
	"sync"
	"time"
)

// Budget is a limit that several tasks share, with what they have used of it. A
// nil Budget has no limit. It is safe for concurrent use.
type Budget struct {
	mu   sync.Mutex
	max  Amount
	used Amount
}

// New returns a budget of which nothing is used; nil when limit limits nothing.
func New(limit Amount) *Budget {
	if limit == (Amount{}) {
		return nil
	}
	return &Budget{max: limit}
}

// Use adds to what is used and reports what exceeds the limit, as
// Amount.Exceeds does.
func (b *Budget) Use(used Amount) string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.Add(used)
	return b.max.Exceeds(b.used)
}

// Reached reports what is used up, as Amount.Reached does: no other task should
// start.
func (b *Budget) Reached() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max.Reached(b.used)
}

// Wall returns the limit of time at work and how much of it is left; a limit of
// zero is none.
func (b *Budget) Wall() (limit, left time.Duration) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max.Wall, b.max.Wall - b.used.Wall
}
