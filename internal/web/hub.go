package web

import (
	"context"
	"fmt"
	"sync"
)

// hub passes each change on to all streams. It needs no memory for slow ones: a stream asks for the present version.
type hub struct {
	boot string // tells the versions of two processes apart

	mu      sync.Mutex
	n       int
	changed chan struct{} // is closed by the next change
}

func newHub(boot string) *hub { return &hub{boot: boot, changed: make(chan struct{})} }

// version returns the present version, and a channel that is closed when it is no longer the present one.
func (h *hub) version() (string, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("%s.%d", h.boot, h.n), h.changed
}

// tell makes a new version.
func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	close(h.changed)
	h.changed = make(chan struct{})
}

// watch tells each change of the source until it ends. It calls changed after each, unless that is nil.
func (h *hub) watch(ctx context.Context, source Source, changed func()) error {
	for ctx.Err() == nil {
		if err := source.Changed(); err != nil {
			return err
		}
		h.tell()
		if changed != nil {
			changed()
		}
	}
	return nil
}
