package agent

import (
	"bytes"
	"io"
	"sync"
)

// transcript is the record of what an agent said, until coven stopped it. Lines
// that are pieces of what comes whole later are left out.
type transcript struct {
	partial []byte // how such lines begin; empty: there are none

	mu   sync.Mutex
	to   io.Writer // nil: no record, or it has ended
	head []byte    // of a line of which it is not known yet
	skip bool      // the rest of the line is left out
	kept bool      // the rest of the line is kept
}

// Write records p. After end it takes p and records nothing.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return len(p), nil
	}
	whole := p
	if len(t.partial) > 0 {
		if whole = t.without(p); len(whole) == 0 {
			return len(p), nil
		}
	}
	if n, err := t.to.Write(whole); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// without is what of p is recorded now.
func (t *transcript) without(p []byte) []byte {
	var kept []byte
	for part := range bytes.Lines(p) {
		if !t.skip && !t.kept {
			t.head = append(t.head, part...)
			part = t.head
			t.skip = bytes.HasPrefix(part, t.partial)
			if t.kept = !t.skip && !bytes.HasPrefix(t.partial, part); !t.skip && !t.kept {
				continue // too short to say
			}
			t.head = nil
		}
		if t.kept {
			kept = append(kept, part...)
		}
		if part[len(part)-1] == '\n' {
			t.skip, t.kept = false, false
		}
	}
	return kept
}

// end closes the record.
func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil && len(t.head) > 0 {
		_, _ = t.to.Write(t.head) // the beginning of a line that never came
	}
	t.to, t.head = nil, nil
}
