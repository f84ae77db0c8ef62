package timelimit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var fired []time.Duration
		refuse := 1
		c := New(10*time.Second, func() bool {
			fired = append(fired, time.Since(began))
			refuse--
			return refuse < 0
		})
		pass(100 * time.Second) // has no effect before run
		c.run()
		pass(4 * time.Second)
		c.halt()
		pass(100 * time.Second)
		c.run()
		pass(5 * time.Second) // 9 s used
		c.Touch()
		pass(9 * time.Second)
		pass(time.Second + 10*time.Second) // the first fire is refused
		pass(100 * time.Second)
		synctest.Wait()
		want := []time.Duration{219 * time.Second, 229 * time.Second}
		if len(fired) != 2 || fired[0] != want[0] || fired[1] != want[1] {
			t.Errorf("fired at %v, want %v", fired, want)
		}
	})
}

func TestClockEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(time.Second, func() bool { t.Error("fired"); return true })
		c.run()
		c.end()
		c.run()
		c.Touch()
		pass(time.Minute)
	})
}

func TestClocksPausesNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var fired time.Duration
		c := Together(New(time.Second, func() bool { fired = time.Since(began); return true }), nil)
		pass(time.Second)
		c.Resume() // starts the clocks
		c.Pause()
		c.Pause()
		pass(time.Second)
		c.Resume()
		pass(time.Second)
		c.Resume()
		c.Resume() // an extra resume has no effect
		pass(2 * time.Second)
		synctest.Wait()
		if fired != 4*time.Second {
			t.Errorf("fired at %v", fired)
		}
		c.End()
	})
}

// pass sleeps on the clock of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
