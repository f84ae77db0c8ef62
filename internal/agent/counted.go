package agent

import (
	"context"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/gate"
)

// counted lets a tool call wait until it is known what the answer that asked for it
// has used: an agent whose budget is spent makes none. The call comes by another
// way than the CLI's output, and may be faster.
type counted struct {
	mu    sync.Mutex
	asked []string // calls of the answer that is not counted yet
	known map[string]chan struct{}
	spent bool
}

// mostCount is how long a call waits for a CLI that does not say what an answer
// used.
const mostCount = 5 * time.Second

func (c *counted) of(id string) chan struct{} {
	if c.known == nil {
		c.known = map[string]chan struct{}{}
	}
	if c.known[id] == nil {
		c.known[id] = make(chan struct{})
	}
	return c.known[id]
}

// call notes that the answer of now asks for a call.
func (c *counted) call(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, id)
}

// answered says that the answer is counted, and whether the budget is spent.
func (c *counted) answered(spent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spent = c.spent || spent
	for _, id := range c.asked {
		select {
		case <-c.of(id):
		default:
			close(c.of(id))
		}
	}
	c.asked = nil
}

// await waits until a call's answer is counted, and reports whether the budget is
// spent.
func (c *counted) await(ctx context.Context, id string) bool {
	c.mu.Lock()
	known := c.of(id)
	c.mu.Unlock()
	timer := time.NewTimer(mostCount)
	defer timer.Stop()
	select {
	case <-known:
	case <-ctx.Done():
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent
}

// frugal is a gate that lets no call through when the budget is spent.
type frugal struct {
	Gate
	counted *counted
}

// Decide implements Gate.
func (f frugal) Decide(ctx context.Context, call gate.Call) gate.Verdict {
	if !f.counted.await(ctx, call.ID) {
		return f.Gate.Decide(ctx, call)
	}
	// Without an answer the agent does not go on to another turn before it is gone.
	timer := time.NewTimer(mostCount)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return gate.Verdict{Message: "the budget is spent: the agent is stopped"}
}

// Decided implements Gate: what an agent says whose budget is spent is of no
// interest, it is being stopped.
func (f frugal) Decided(id string) bool {
	f.counted.mu.Lock()
	defer f.counted.mu.Unlock()
	return f.counted.spent || f.Gate.Decided(id)
}
