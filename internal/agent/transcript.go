package agent

import (
	"io"
	"sync"
)

// transcript is the record of what an agent said, until coven stopped it.
type transcript struct {
	mu sync.Mutex
	to io.Writer // nil: no record, or it has ended
}

// Write records p. After end it takes p and records nothing.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

// end closes the record.
func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to = nil
}
