package main

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
		p := newPlaces(1)
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
		if p.running != 0 || p.polling["all"] != 0 || p.polling["own"] != 0 {
			t.Errorf("left: %d, %v", p.running, p.polling)
		}
		reserve("all")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.ReserveSlot(ctx, on{queue: "all"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
