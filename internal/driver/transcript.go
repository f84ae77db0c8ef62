package driver

import (
	"bytes"
	"io"
	"sync"
)

// transcript records an agent's output until coven stops the agent. It omits partial
// messages that are later repeated in full.
type transcript struct {
	partial []byte // prefix of partial messages; may be empty

	mu   sync.Mutex
	to   io.Writer // nil if there is no record or it is closed
	head []byte    // beginning of a line, not yet classified
	skip bool      // omit the rest of the line
	kept bool      // keep the rest of the line
}

// Write records p. After end it discards p.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil {
		return len(p), nil
	}
	whole := p
	if len(t.partial) > 0 {
		if whole = t.filter(p); len(whole) == 0 {
			return len(p), nil
		}
	}
	if n, err := t.to.Write(whole); err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// filter returns the part of p to record now.
func (t *transcript) filter(p []byte) []byte {
	var kept []byte
	for part := range bytes.Lines(p) {
		if !t.skip && !t.kept {
			t.head = append(t.head, part...)
			part = t.head
			t.skip = bytes.HasPrefix(part, t.partial)
			if t.kept = !t.skip && !bytes.HasPrefix(t.partial, part); !t.skip && !t.kept {
				continue // too short to classify
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

func (t *transcript) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil && len(t.head) > 0 {
		_, _ = t.to.Write(t.head) // the beginning of an incomplete line
	}
	t.to, t.head = nil, nil
}
