package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// original 3c 10: a step may use exactly the time of its limit: an agent more than half an hour, and a loop
// without a limit more than five minutes.
func TestLongTimes(t *testing.T) {
	for name, test := range map[string]struct {
		yaml  string
		each  time.Duration // duration of a leaf
		took  time.Duration
		error string
	}{
		"an agent works for 50 minutes": {"steps:\n- {name: a, type: agent, timeout: 1h, prompt: \"x\\ny\"}", 50 * time.Minute, 50 * time.Minute, ""},
		"an agent works for too long":   {"steps:\n- {name: a, type: agent, timeout: 1h, prompt: \"x\\ny\"}", 70 * time.Minute, time.Hour, "step a took longer than 1h0m0s"},
		"a loop without a limit of its own": {
			"steps:\n- name: l\n  type: loop\n  max_iterations: 5\n  on_max_iterations: continue\n  steps: [{name: a, type: script, timeout: 30m, command: x}]",
			20 * time.Minute, 100 * time.Minute, "",
		},
		"the run is over in the middle of a loop": {
			"timeout: 30m\nsteps:\n- name: l\n  type: loop\n  max_iterations: 5\n  on_max_iterations: continue\n  steps: [{name: a, type: script, timeout: 30m, command: x}]",
			20 * time.Minute, 30 * time.Minute, "the run took longer than 30m0s",
		},
		"a run has two hours unless it says otherwise": {
			"steps:\n- name: l\n  type: loop\n  max_iterations: 9\n  on_max_iterations: continue\n  steps: [{name: a, type: script, timeout: 30m, command: x}]",
			20 * time.Minute, 2 * time.Hour, "the run took longer than 2h0m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := plan(t, test.yaml)
				slow := leafFunc(func(ctx context.Context, c engine.Call) (event.Result, error) {
					select {
					case <-ctx.Done():
						return event.Result{}, context.Cause(ctx)
					case <-time.After(test.each):
						return ok(c)
					}
				})
				start := time.Now()
				out, err := runner.RunSteps(t.Context(), p, runner.NewJournal(withoutLogs{&paper{}}), slow, nil)
				if took := time.Since(start); err != nil || out.Result.Error != test.error || took != test.took {
					t.Errorf("after %s: %q, %v", took, out.Result.Error, err)
				}
			})
		})
	}
}
