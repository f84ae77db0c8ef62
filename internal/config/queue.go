package config

import (
	"fmt"
	"maps"
	"slices"
)

// Queue configures how the subagents of a session are run.
type Queue struct {
	MaxConcurrent  int            `yaml:"max_concurrent" about:"how many subagents of a session run at once, 1 to 64"`
	ProviderLimits map[string]int `yaml:"provider_limits" about:"how many of them, by account, if max_concurrent allows more than one"`
}

func defaultQueue() Queue {
	return Queue{MaxConcurrent: 1, ProviderLimits: map[string]int{"local": 1, "anthropic": 3, "openai": 5}}
}

// queue checks the section queue of a file. It adds the limits to the previous ones.
func (r reader) queue(q *Queue, before Queue) {
	if at := r.at("queue.max_concurrent"); at.Set() && (q.MaxConcurrent < 1 || q.MaxConcurrent > MaxTasks) {
		r.doc.Fail(at, fmt.Sprintf("%d is not between 1 and %d", q.MaxConcurrent, MaxTasks), "")
	}
	at := r.at("queue.provider_limits")
	if !at.Set() {
		return
	}
	limits := maps.Clone(before.ProviderLimits)
	for _, account := range slices.Sorted(maps.Keys(q.ProviderLimits)) {
		if n := q.ProviderLimits[account]; n < 1 || n > MaxTasks {
			r.doc.Fail(r.doc.Key(at, account), fmt.Sprintf("%d is not between 1 and %d", n, MaxTasks), "")
		}
		limits[account] = q.ProviderLimits[account]
	}
	q.ProviderLimits = limits
}
