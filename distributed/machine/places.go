package machine

import (
	"context"
	"sync"

	"go.temporal.io/sdk/worker"
)

// Places are the places for sessions of a machine. A session takes one, or as many as its cost. All queues of the machine share them: each may poll for as many
// sessions as there are free places. A worker.FixedSizeSlotSupplier would give the places to the queues that poll first, and the others would wait until these polls
// end, for a minute.
//
// Several queues may receive sessions for the same place. A Machine returns those that are too many.
type Places struct {
	most int

	mu      sync.Mutex
	taken   int            // by sessions that the machine has received
	running int            // by those of them that have begun
	polling map[string]int // by queue
	changed chan struct{}  // closed and replaced when a place may have become free
}

// NewPlaces returns a number of places.
func NewPlaces(most int) *Places {
	return &Places{most: most, polling: map[string]int{}, changed: make(chan struct{})}
}

// poll is the user data of a permit.
type poll struct {
	queue string
	used  bool // by a session
}

// ReserveSlot implements worker.SlotSupplier.
func (p *Places) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
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

func (p *Places) reserve(queue string) (*worker.SlotPermit, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken+p.polling[queue] >= p.most {
		return nil, p.changed
	}
	p.polling[queue]++
	return &worker.SlotPermit{UserData: &poll{queue: queue}}, nil
}

// TryReserveSlot implements worker.SlotSupplier. Sessions are not started without a queue.
func (p *Places) TryReserveSlot(worker.SlotReservationInfo) *worker.SlotPermit { return nil }

// MarkSlotUsed implements worker.SlotSupplier.
func (p *Places) MarkSlotUsed(info worker.SlotMarkUsedInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one, ok := info.Permit().UserData.(*poll); ok && !one.used {
		one.used = true
		p.polling[one.queue]--
		p.taken++
	}
}

// ReleaseSlot implements worker.SlotSupplier.
func (p *Places) ReleaseSlot(info worker.SlotReleaseInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := info.Permit().UserData.(*poll)
	switch {
	case !ok:
		return
	case one.used:
		p.taken--
	default:
		p.polling[one.queue]--
	}
	p.wake()
}

// wake lets those look again that wait for a place.
func (p *Places) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// A seat has the places of a session that the machine has received.
type seat struct {
	places *Places
	cost   int
	begun  bool
}

// seat returns the seat of a session that needs a number of places. From now on, the machine receives nothing for these.
func (p *Places) seat(cost int) *seat {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &seat{places: p, cost: min(max(cost, 1), p.most)}
	p.taken += s.cost - 1 // the permit has one
	return s
}

// begin reports whether the places are free, and then takes them. Otherwise they may be free after changed is closed.
func (s *seat) begin() (begun bool, changed <-chan struct{}) {
	p := s.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.begun = p.running+s.cost <= p.most; s.begun {
		p.running += s.cost
	}
	return s.begun, p.changed
}

// leave gives the places back.
func (s *seat) leave() {
	p := s.places
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= s.cost - 1
	if s.begun {
		p.running -= s.cost
	}
	p.wake()
}

// MaxSlots implements worker.SlotSupplier.
func (p *Places) MaxSlots() int { return p.most }
