package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Durations of the disturbances.
const (
	hanging   = 15 * time.Second
	cutting   = 12 * time.Second
	originOff = 20 * time.Second
)

// disturb disturbs until ctx ends.
func (r *run) disturb(ctx context.Context) error {
	kill, hang, cut := ticks(r.o.Kill), ticks(r.o.Hang), ticks(r.o.Cut)
	server, origin := after(r.o.Server), after(r.o.Origin)
	for n := 0; ; n++ {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-kill:
			err = r.replace(ctx, func(m *machine) error { return r.fleet.kill(m) })
		case <-hang:
			err = r.replace(ctx, func(m *machine) error { r.fleet.hang(ctx, m, n%2 == 0, hanging); return nil })
		case <-cut:
			err = r.replace(ctx, func(m *machine) error { return r.fleet.cut(ctx, m, cutting) })
		case <-server:
			err = r.restartServer(ctx)
		case <-origin:
			r.origin.stop()
			wait(ctx, originOff)
			err = r.origin.start()
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("disturb: %w", err)
		}
	}
}

// replace does something to a machine, and hires another one.
func (r *run) replace(ctx context.Context, do func(*machine) error) error {
	there := r.fleet.there()
	if len(there) == 0 {
		return nil
	}
	if err := do(there[rand.IntN(len(there))]); err != nil { //nolint:gosec // any
		return err
	}
	return r.fleet.hire(ctx)
}

// restartServer kills the server and starts it again.
func (r *run) restartServer(ctx context.Context) error {
	r.note("the server is killed")
	if err := r.server.Kill(); err != nil {
		return err
	}
	err := r.server.Restart(ctx)
	r.note("the server is back")
	return err
}

// ticks returns a channel of ticks, or nil if there are none.
func ticks(each time.Duration) <-chan time.Time {
	if each == 0 {
		return nil
	}
	return time.Tick(each)
}

// after returns a channel that ticks once, or nil.
func after(pause time.Duration) <-chan time.Time {
	if pause == 0 {
		return nil
	}
	return time.After(pause)
}
