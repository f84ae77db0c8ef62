package fakeapi

import (
	"context"
	"fmt"
	"sync"
)

// holds are named points at which answers wait. A released name stays
// released, so it does not matter whether the release or the answer comes first.
type holds struct {
	mu     sync.Mutex
	byName map[string]*hold
}

type hold struct {
	reached, released         chan struct{}
	reachedOnce, releasedOnce sync.Once
}

func newHolds() *holds { return &holds{byName: map[string]*hold{}} }

func (h *holds) get(name string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byName[name] == nil {
		h.byName[name] = &hold{reached: make(chan struct{}), released: make(chan struct{})}
	}
	return h.byName[name]
}

// wait blocks an answer until the name is released. An empty name does not block.
func (h *holds) wait(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	point := h.get(name)
	point.reachedOnce.Do(func() { close(point.reached) })
	select {
	case <-point.released:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *holds) waitReached(ctx context.Context, name string) error {
	select {
	case <-h.get(name).reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for hold %q: %w", name, ctx.Err())
	}
}

func (h *holds) release(name string) {
	point := h.get(name)
	point.releasedOnce.Do(func() { close(point.released) })
}
