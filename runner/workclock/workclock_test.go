package workclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Time while a clock is paused does not count, nor does it for the clocks around it.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, step := errors.New("run"), errors.New("step")
		outer, stop := Limit(t.Context(), time.Hour, run)
		defer stop()
		inner, stopInner := Limit(outer, 10*time.Minute, step)
		defer stopInner()
		wait := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		wait(9 * time.Minute)
		resume := Pause(inner)
		nested := Pause(inner)
		wait(100 * time.Hour)
		nested()
		nested() // a second call has no effect
		wait(time.Hour)
		if inner.Err() != nil || outer.Err() != nil {
			t.Fatal("time went on while the clocks stood still")
		}
		resume()
		wait(59 * time.Second)
		if inner.Err() != nil {
			t.Fatal("the step had a second left")
		}
		wait(2 * time.Second)
		if !errors.Is(context.Cause(inner), step) || outer.Err() != nil {
			t.Fatalf("the step's time is up: %v, %v", context.Cause(inner), outer.Err())
		}
		wait(50 * time.Minute)
		if !errors.Is(context.Cause(outer), run) {
			t.Errorf("the run's time is up: %v", context.Cause(outer))
		}
	})
}
