package workspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/worktree/claim"
)

// A claim is a lease: it is valid for leaseTime, and a running session renews it every RenewTime. If the
// claim of a running session has expired, its machine is gone; on the same machine, the lock of the session
// shows that at once. The claim's ref, not the time, prevents a late landing.
const (
	leaseTime = 30 * time.Minute
	RenewTime = 5 * time.Minute
)

// Keep renews the claim until stop is called. The returned context ends when the claim is lost.
func (s *Workspace) Keep(ctx context.Context, every time.Duration) (kept context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() {
		ticker := time.NewTicker(clock.ToReal(every))
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-s.Keeper.Asked():
				if err := s.Keeper.Answers(ctx); errors.As(err, new(*handover.TakenError)) {
					cancel(err)
				}
				continue
			case <-ticker.C:
			}
			if err := s.renew(ctx); errors.Is(err, claim.ErrClaimLost) || errors.Is(err, claim.ErrClaimed) || errors.Is(err, claim.ErrNoClaim) {
				cancel(err)
			}
			if s.Keeper == nil {
				continue
			}
			if err := s.Keeper.Check(ctx); errors.As(err, new(*handover.TakenError)) {
				cancel(err)
			}
		}
	})
	return ctx, sync.OnceFunc(func() { close(done); side.Wait(); cancel(nil) })
}

// renew extends the claim to leaseTime from now.
func (s *Workspace) renew(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.Oid == "" {
		return nil // not claimed yet
	}
	held, err := claim.Renew(ctx, s.Repo, s.held, s.Session.Now().Add(leaseTime))
	if err == nil {
		s.held = held
	}
	return err
}
