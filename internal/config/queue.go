package config

import (
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
	r.between(r.at("queue.max_concurrent"), q.MaxConcurrent, 1, MaxTasks)
	at := r.at("queue.provider_limits")
	if !at.Set() {
		return
	}
	limits := maps.Clone(before.ProviderLimits)
	for _, account := range slices.Sorted(maps.Keys(q.ProviderLimits)) {
		r.between(r.doc.Key(at, account), q.ProviderLimits[account], 1, MaxTasks)
		limits[account] = q.ProviderLimits[account]
	}
	q.ProviderLimits = limits
}
