// Package clock is the clock that coven uses for waiting.
//
// It shows real time unless a test makes it run faster. Env is a factor such as 60,
// or a factor and the Unix time in seconds at which both clocks are equal, such as
// 60@1795280000. With that time, all coven processes of a test share one clock;
// without it, each clock starts with its process. Real times from elsewhere (the reset
// of a limit, a delay) must be converted with Here or ToClock.
package clock

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// Env is the environment variable that makes the clock run faster.
const Env = "COVEN_CLOCK_SCALE"

// pace relates the clock to real time.
type pace struct {
	scale float64
	from  time.Time // when both clocks were equal
}

var ours = parse(os.Getenv(Env), time.Now())

// parse parses the value of Env. An invalid value means real time.
func parse(value string, start time.Time) pace {
	factor, instant, given := strings.Cut(value, "@")
	p := pace{1, start.Round(0)}
	scale, err := strconv.ParseFloat(factor, 64)
	if err != nil || scale <= 0 {
		return p
	}
	if given {
		seconds, err := strconv.ParseInt(instant, 10, 64)
		if err != nil {
			return p
		}
		p.from = time.Unix(seconds, 0)
	}
	p.scale = scale
	return p
}

func (p pace) at(world time.Time) time.Time {
	if p.scale == 1 {
		return world
	}
	return p.from.Add(p.here(world.Round(0).Sub(p.from)))
}

func (p pace) here(d time.Duration) time.Duration { return time.Duration(float64(d) * p.scale) }

func (p pace) world(d time.Duration) time.Duration {
	if p.scale == 1 {
		return d
	}
	return time.Duration(float64(d) / p.scale)
}

// Now returns the current time.
func Now() time.Time { return ours.at(time.Now()) }

// Since returns the time elapsed since t.
func Since(t time.Time) time.Duration { return Now().Sub(t) }

// Here converts a real time to this clock.
func Here(world time.Time) time.Time { return ours.at(world) }

// ToClock converts a real duration to this clock.
func ToClock(world time.Duration) time.Duration { return ours.here(world) }

// ToReal converts a duration of this clock to real time, for a timer or a ticker.
func ToReal(d time.Duration) time.Duration { return ours.world(d) }

// NewTimer is time.NewTimer for a duration of this clock.
func NewTimer(d time.Duration) *time.Timer { return time.NewTimer(ToReal(d)) }

// AfterFunc is time.AfterFunc for a duration of this clock. To reset the timer, convert the duration with ToReal.
func AfterFunc(d time.Duration, f func()) *time.Timer { return time.AfterFunc(ToReal(d), f) }

// maxSleep is the longest time between two looks at the clock while waiting: the timers of
// a machine that was suspended run late.
const maxSleep = 10 * time.Second

// SleepUntil waits until the clock shows a time.
func SleepUntil(ctx context.Context, at time.Time) error {
	for {
		left := at.Sub(Now().Round(0))
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(min(ToReal(left), maxSleep))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}
