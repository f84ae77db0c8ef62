package notice

import (
	"slices"
	"sync"
	"time"
)

// Batch collects notices that follow each other closely, and delivers them as one.
type Batch struct {
	Window  time.Duration
	Deliver func([]Notice) // is called once at a time

	mu         sync.Mutex
	pending    []Notice
	timer      *time.Timer
	delivering sync.Mutex
}

// Add adds a notice. A later one of the same task replaces it.
func (b *Batch) Add(n Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(without(b.pending, n.Task), n)
	if b.timer == nil {
		b.timer = time.AfterFunc(b.Window, b.Flush)
	}
}

// Drop removes the notice of a task that no longer needs a person.
func (b *Batch) Drop(task string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = without(b.pending, task)
}

// Clear removes all notices: the person looks here.
func (b *Batch) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = nil
}

// Flush delivers the collected notices now, and waits until all are delivered.
func (b *Batch) Flush() {
	b.delivering.Lock()
	defer b.delivering.Unlock()
	b.mu.Lock()
	all := b.pending
	b.pending = nil
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.mu.Unlock()
	if len(all) > 0 {
		b.Deliver(all)
	}
}

func without(all []Notice, task string) []Notice {
	return slices.DeleteFunc(all, func(n Notice) bool { return n.Task == task })
}
