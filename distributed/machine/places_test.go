package machine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.temporal.io/sdk/worker"
)

// on is the information about a queue.
type on struct {
	worker.SlotReservationInfo
	queue string
}

func (o on) TaskQueue() string { return o.queue }

// of is the information about a permit.
type of struct {
	worker.SlotReleaseInfo
	permit *worker.SlotPermit
}

func (o of) Permit() *worker.SlotPermit { return o.permit }

// TestPlaces checks that all queues poll while a place is free, and none while all are taken.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1)
		reserve := func(queue string) *worker.SlotPermit {
			permit, err := p.ReserveSlot(t.Context(), on{queue: queue})
			if err != nil {
				t.Fatal(err)
			}
			return permit
		}
		all, own := reserve("all"), reserve("own")
		again := make(chan *worker.SlotPermit, 2)
		go func() { again <- reserve("all") }()
		go func() { again <- reserve("own") }()
		synctest.Wait()
		if len(again) > 0 {
			t.Fatal("a queue polls twice for one place")
		}
		p.MarkSlotUsed(of{permit: all})
		p.ReleaseSlot(of{permit: own}) // it has received nothing
		synctest.Wait()
		if len(again) > 0 {
			t.Fatal("a queue polls without a free place")
		}
		p.ReleaseSlot(of{permit: all})
		p.ReleaseSlot(of{permit: <-again})
		p.ReleaseSlot(of{permit: <-again})
		if p.taken != 0 || p.polling["all"] != 0 || p.polling["own"] != 0 {
			t.Errorf("left: %d, %v", p.taken, p.polling)
		}
		reserve("all")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.ReserveSlot(ctx, on{queue: "all"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// A session that needs several places waits for them, and the machine receives no others until it has begun. Two such sessions do not wait for each other.
func TestCost(t *testing.T) {
	p := NewPlaces(3)
	receive := func() *worker.SlotPermit {
		permit, _ := p.reserve("all")
		if permit == nil {
			t.Fatal("no place is free")
		}
		p.MarkSlotUsed(of{permit: permit})
		return permit
	}
	permits := []*worker.SlotPermit{receive(), receive(), receive()}
	one, all, two := p.seat(0), p.seat(9), p.seat(2)
	begins := func(s *seat, want bool) {
		t.Helper()
		if begun, _ := s.begin(); begun != want {
			t.Errorf("a session of cost %d begins: %v", s.cost, begun)
		}
	}
	begins(one, true)
	begins(all, false)
	begins(two, true)
	two.leave()
	p.ReleaseSlot(of{permit: permits[2]})
	if permit, _ := p.reserve("all"); permit != nil {
		t.Error("the machine receives a session while another one waits for its places")
	}
	_, changed := all.begin()
	one.leave()
	<-changed
	begins(all, true)
	all.leave()
	p.ReleaseSlot(of{permit: permits[0]})
	p.ReleaseSlot(of{permit: permits[1]})
	if p.taken != 0 || p.running != 0 {
		t.Errorf("left: %d taken, %d running", p.taken, p.running)
	}
}
