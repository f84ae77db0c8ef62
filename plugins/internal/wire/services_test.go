package wire

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/hostservice"
	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
)

// held is a service that blocks every request until the call ends.
type held struct {
	hostservice.Services
	begun chan string
}

func (h held) RunAgent(ctx context.Context, _ hostservice.Ask) (hostservice.Answer, error) {
	h.begun <- "agent"
	<-ctx.Done()
	return hostservice.Answer{}, ctx.Err()
}

func (h held) Diff(ctx context.Context, _ ...string) (string, error) {
	h.begun <- "diff"
	<-ctx.Done()
	return "", ctx.Err()
}

// free is a service that answers immediately.
type free struct{ hostservice.Services }

func (free) Log(context.Context, string) error { return nil }

// next returns the next request that began.
func next(t *testing.T, begun <-chan string) string {
	t.Helper()
	select {
	case what := <-begun:
		return what
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing more is begun")
		return ""
	}
}

// Each call has its own slots, and agents need none.
func TestPlaces(t *testing.T) {
	d, begun := NewServiceServer(), make(chan string, 4*maxConcurrent)
	a, overA := d.Open(held{begun: begun})
	b, overB := d.Open(free{})
	defer overB()
	ctx := t.Context()
	var all sync.WaitGroup
	for range 2 * maxConcurrent {
		all.Go(func() { _, _ = d.RunAgent(ctx, &pluginv1.RunAgentRequest{Call: a}) })
	}
	for range 2 * maxConcurrent {
		next(t, begun)
	}
	for range maxConcurrent + 1 {
		all.Go(func() { _, _ = d.Diff(ctx, &pluginv1.DiffRequest{Call: a}) })
	}
	for range maxConcurrent {
		if what := next(t, begun); what != "diff" {
			t.Errorf("begun: %s", what)
		}
	}
	logged := make(chan string, 1)
	go func() {
		if _, err := d.Log(ctx, &pluginv1.LogRequest{Call: b, Text: "x"}); err != nil {
			t.Error(err)
		}
		logged <- "log"
	}()
	next(t, logged) // of another call
	select {
	case what := <-begun:
		t.Errorf("%s has a place that there is not", what)
	default:
	}
	overA()
	all.Wait()
	if _, err := d.Diff(ctx, &pluginv1.DiffRequest{Call: a}); err == nil {
		t.Error("a call that is over is served")
	}
}
