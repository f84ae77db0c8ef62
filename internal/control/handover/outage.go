package handover

import (
	"context"
	"errors"
	"sync"

	"github.com/coven-run/coven/internal/process/clock"
)

// An Outage lets the beginning of sessions wait for remotes that have answered this process before, and do not answer now. The zero Outage is ready for use.
type Outage struct {
	answered sync.Map // names of remotes
	told     sync.Map // those that are away
}

// Wait repeats do while its error is ErrAway, but returns that of a remote that has never answered. It calls tell once for each time that a remote is away.
func (o *Outage) Wait(ctx context.Context, remote string, tell func(text string), do func() error) error {
	for {
		err := do()
		if err == nil {
			o.answered.Store(remote, true)
			o.told.Delete(remote)
		}
		if _, before := o.answered.Load(remote); !before || !errors.Is(err, ErrAway) {
			return err
		}
		if _, told := o.told.LoadOrStore(remote, true); !told {
			tell(err.Error() + "; waiting for it before more tasks begin")
		}
		if err := clock.SleepUntil(ctx, clock.Now().Add(awayPause)); err != nil {
			return err
		}
	}
}
