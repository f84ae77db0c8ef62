package clock

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	later := start.Add(time.Minute)
	for value, want := range map[string]time.Time{
		"":          later,
		"1":         later,
		"60":        start.Add(time.Hour),
		"60@999940": time.Unix(999_940, 0).Add(2 * time.Hour),
		"0.5":       start.Add(30 * time.Second),
		"fast":      later,
		"-1":        later,
		"0":         later,
		"60@noon":   later,
	} {
		if got := parse(value, start).at(later); !got.Equal(want) {
			t.Errorf("%q: a minute later it is %s, not %s", value, got, want)
		}
	}
	p := parse("60", start)
	if p.here(time.Second) != time.Minute || p.world(time.Minute) != time.Second {
		t.Errorf("a second lasts %s, a minute %s", p.here(time.Second), p.world(time.Minute))
	}
}

// Without the variable, Now is the real time, to the nanosecond.
func TestNow(t *testing.T) {
	before := time.Now()
	now := Now()
	if now.Before(before) || now.After(time.Now()) || Since(before) < 0 || Here(before) != before {
		t.Errorf("it is %s, not %s", now, before)
	}
	<-NewTimer(time.Millisecond).C
	done := make(chan struct{})
	AfterFunc(time.Millisecond, func() { close(done) })
	<-done
	if Since(before) < 2*time.Millisecond {
		t.Errorf("two milliseconds last %s", Since(before))
	}
}
