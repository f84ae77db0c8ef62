package workspace

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/worktree/claim"
)

// Claim claims the task for this session, even if the session already has the claim. It
// replaces the claim of a session that never started or is over.
func (s *Workspace) Claim(ctx context.Context) (event.Claim, error) {
	held, err := s.claim(ctx)
	for tries := 1; errors.Is(err, claim.ErrNoClaim) && tries < claimTries; tries++ {
		held, err = s.claim(ctx) // the claim to replace was released in the meantime
	}
	if err != nil {
		return event.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return event.Claim{Oid: held.Oid, Holder: held.Holder}, nil
}

// claimTries limits the attempts to replace a claim while others replace it, too.
const claimTries = 10

func (s *Workspace) claim(ctx context.Context) (claim.Held, error) {
	held, err := claim.Of(ctx, s.Repo, s.Task)
	switch {
	case errors.Is(err, claim.ErrNoClaim):
		return s.take(ctx, "")
	case err != nil:
		return held, err
	case !s.leased(held) && (held.Session == s.Session.ID || s.free(held.Session)):
		return s.take(ctx, held.Oid)
	default:
		return held, &claim.ClaimedError{Present: held}
	}
}

// leased reports whether a coven on another machine may be working under a claim: its session is running or
// about to start. The lock of that session may not be visible from here, so the claim is valid until it
// expires.
func (s *Workspace) leased(held claim.Held) bool {
	if holder.HostOf(held.Holder) == holder.Machine() || !s.Session.Now().Before(held.Expires) {
		return false
	}
	if held.Session != s.Session.ID {
		return session.NeverStarted(s.Repo.Root, held.Session)
	}
	v, err := s.Session.View()
	return err != nil || v.Status == session.Running
}

// free reports whether the session of a claim no longer needs it.
func (s *Workspace) free(id string) bool {
	return session.NeverStarted(s.Repo.Root, id) || session.IsOver(s.Repo.Root, id)
}

func (s *Workspace) take(ctx context.Context, replaces string) (claim.Held, error) {
	return claim.Acquire(ctx, s.Repo, claim.Claim{
		Task: s.Task, Holder: s.Holder, Session: s.Session.ID, Attempt: s.Attempt, Expires: s.Session.Now().Add(leaseTime),
	}, replaces)
}

// Release releases the claim.
func (s *Workspace) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := claim.Release(ctx, s.Repo, s.Task, s.held.Oid); err != nil && !errors.Is(err, claim.ErrNoClaim) {
		return err
	}
	return nil
}
