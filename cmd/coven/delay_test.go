package main

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

// K-02: the words of an agent are on coven's standard output within 200 ms, while the agent is still held
// in the middle of its answer. The usual delay is a few milliseconds; half of the lines may be late,
// because the machine may be busy.
func TestLineOnScreen(t *testing.T) {
	const limit, lines, rounds = 200 * time.Millisecond, 20, 3
	var medians []time.Duration
	for range rounds {
		d := newDelay(t, lines)
		cmd := exec.CommandContext(t.Context(), "coven", "run", "-p", "Talk", "--auto-approve", "--grimoire", "none")
		took := d.lines(t, cmd, nil, lines)
		slices.Sort(took)
		if medians = append(medians, took[lines/2]); medians[len(medians)-1] < limit {
			return
		}
	}
	t.Errorf("half of the lines took more than %v, in each of %d rounds", medians, rounds)
}
