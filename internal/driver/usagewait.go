package driver

import (
	"context"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/gate"
)

// usageWait delays a tool call until the usage of the answer that requested it is known,
// so that an agent that has spent its budget makes no call. Calls do not arrive through the
// CLI's output and may overtake it.
type usageWait struct {
	mu    sync.Mutex
	asked []string // calls of the answer whose usage is not known yet
	known map[string]chan struct{}
	spent bool
}

// maxUsageWait limits how long a call waits for the usage of its answer, which a CLI may never report.
const maxUsageWait = 5 * time.Second

func (c *usageWait) of(id string) chan struct{} {
	if c.known == nil {
		c.known = map[string]chan struct{}{}
	}
	if c.known[id] == nil {
		c.known[id] = make(chan struct{})
	}
	return c.known[id]
}

// call records that the current answer requests a call.
func (c *usageWait) call(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, id)
}

// answered records that the usage of the current answer is known.
func (c *usageWait) answered(spent bool) {
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

// await waits until the usage of a call's answer is known, and reports whether the
// budget is spent.
func (c *usageWait) await(ctx context.Context, id string) bool {
	c.mu.Lock()
	known := c.of(id)
	c.mu.Unlock()
	timer := time.NewTimer(maxUsageWait)
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

// budgetGate denies all calls once the budget is spent.
type budgetGate struct {
	Gate
	counted *usageWait
}

// Decide implements Gate.
func (f budgetGate) Decide(ctx context.Context, call gate.Call) gate.Verdict {
	if !f.counted.await(ctx, call.ID) {
		return f.Gate.Decide(ctx, call)
	}
	// Hold back the answer, so that the agent starts no other turn before it is stopped.
	timer := time.NewTimer(maxUsageWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return gate.Verdict{Message: "the budget is spent: the agent is stopped"}
}

// Decided implements Gate. An agent that has spent its budget is being stopped, so its
// calls count as decided.
func (f budgetGate) Decided(id string) bool {
	f.counted.mu.Lock()
	defer f.counted.mu.Unlock()
	return f.counted.spent || f.Gate.Decided(id)
}
