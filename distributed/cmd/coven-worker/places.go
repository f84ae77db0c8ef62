package main

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// places are the places for sessions of a machine. All its queues share them: each may poll for as many sessions as there are free places. A
// worker.FixedSizeSlotSupplier would give the places to the queues that poll first, and the others would wait until these polls end, for a minute.
//
// Several queues may receive sessions for the same place. machine.Machine returns those that are too many.
type places struct {
	most int

	mu      sync.Mutex
	running int
	polling map[string]int // by queue
	changed chan struct{}  // closed and replaced when a place may have become free
}

func newPlaces(most int) *places {
	return &places{most: most, polling: map[string]int{}, changed: make(chan struct{})}
}

// poll is the user data of a permit.
type poll struct {
	queue string
	used  bool // by a session
}

// ReserveSlot implements worker.SlotSupplier.
func (p *places) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		permit, changed := p.reserve(info.TaskQueue())
		if permit != nil {
			return permit, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *places) reserve(queue string) (*worker.SlotPermit, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running+p.polling[queue] >= p.most {
		return nil, p.changed
	}
	p.polling[queue]++
	return &worker.SlotPermit{UserData: &poll{queue: queue}}, nil
}

// TryReserveSlot implements worker.SlotSupplier. Sessions are not started without a queue.
func (p *places) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (p *places) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := info.Permit().UserData.(*poll); ok && !one.used {
		one.used = true
		p.polling[one.queue]--
		p.running++
	}
}

// ReleaseSlot implements worker.SlotSupplier.
func (p *places) ReleaseSlot(info worker.SlotReleaseInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := info.Permit().UserData.(*poll)
	switch {
	case !ok:
		return
	case one.used:
		p.running--
	default:
		p.polling[one.queue]--
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// MaxSlots implements worker.SlotSupplier.
func (p *places) MaxSlots() int { return p.most }
