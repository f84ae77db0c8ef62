package workspace

import (
	"context"
	"errors"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/holder"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// Claim takes the task for this session, also when the session has it. A claim of
// a session that never began, or that is over, belongs to nobody.
func (s *Workspace) Claim(ctx context.Context) (event.Claim, error) {
	held, err := s.claim(ctx)
	for tries := 1; errors.Is(err, worktree.ErrNoClaim) && tries < claimTries; tries++ {
		held, err = s.claim(ctx) // the one to replace was given back meanwhile
	}
	if err != nil {
		return event.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return event.Claim{Oid: held.Oid, Holder: held.Holder}, nil
}

// claimTries is how often a claim is replaced that others are replacing, too.
const claimTries = 10

func (s *Workspace) claim(ctx context.Context) (worktree.Held, error) {
	held, err := s.Repo.ClaimOf(ctx, s.Task)
	switch {
	case errors.Is(err, worktree.ErrNoClaim):
		return s.take(ctx, "")
	case err != nil:
		return held, err
	case !s.leased(held) && (held.Session == s.Session.ID || s.free(held.Session)):
		return s.take(ctx, held.Oid)
	default:
		return held, &worktree.ClaimedError{Present: held}
	}
}

// leased reports whether a coven on another machine may be at work under a claim: its
// session says that it runs, or is about to, and the session's lock may not be
// seen from here. Then the claim holds until it has run out.
func (s *Workspace) leased(held worktree.Held) bool {
	if holder.HostOf(held.Holder) == holder.Machine() || !s.Session.Now().Before(held.Expires) {
		return false
	}
	if held.Session != s.Session.ID {
		return session.NeverStarted(s.Repo.Root, held.Session)
	}
	v, err := s.Session.View()
	return err != nil || v.Status == session.Running
}

// free reports whether a session that has a claim will not use it.
func (s *Workspace) free(id string) bool {
	return session.NeverStarted(s.Repo.Root, id) || session.IsOver(s.Repo.Root, id)
}

func (s *Workspace) take(ctx context.Context, replaces string) (worktree.Held, error) {
	return s.Repo.Claim(ctx, worktree.Claim{
		Task: s.Task, Holder: s.Holder, Session: s.Session.ID, Attempt: s.Attempt, Expires: s.Session.Now().Add(leaseTime),
	}, replaces)
}

// Release gives the claim up.
func (s *Workspace) Release(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.Repo.Unclaim(ctx, s.Task, s.held.Oid); err != nil && !errors.Is(err, worktree.ErrNoClaim) {
		return err
	}
	return nil
}
