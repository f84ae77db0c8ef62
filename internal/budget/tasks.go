package budget

import (
	"sync"
	"time"
)

// Budget is a limit that several tasks share, with their usage. A nil Budget has no
// limit. It is safe for concurrent use.
type Budget struct {
	mu   sync.Mutex
	max  Amount
	used Amount
}

// New returns an unused budget, or nil if limit is zero.
func New(limit Amount) *Budget {
	if limit == (Amount{}) {
		return nil
	}
	return &Budget{max: limit}
}

// Use adds usage and describes an exceeded limit, like Amount.Exceeds.
func (b *Budget) Use(used Amount) string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = b.used.Add(used)
	return b.max.Exceeds(b.used)
}

// Reached describes a reached limit, like Amount.Reached. If it is not "",
// no other task should start.
func (b *Budget) Reached() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max.Reached(b.used)
}

// Wall returns the limit of working time and the remaining time. A zero limit means no limit.
func (b *Budget) Wall() (limit, left time.Duration) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.max.Wall, b.max.Wall - b.used.Wall
}
