package worktree

import (
	"context"
	"strings"
)

// LandingTurn waits for the exclusive turn to land on the target and keeps it until
// release is called. During a turn no other coven moves the target, so checks need not
// be repeated between Integrate and Land. Land does not rely on the turn. what
// describes the operation to others who wait: "land T".
func (r *Repo) LandingTurn(ctx context.Context, targetRef, what string) (release func(), err error) {
	l, err := r.lock(ctx, turnLock(targetRef), what)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

// TurnHolder returns who holds the turn to land on a target.
func (r *Repo) TurnHolder(targetRef string) (Holder, bool) {
	return holderOf(r.ours("locks", turnLock(targetRef)))
}

func turnLock(targetRef string) string {
	return "turn-" + SafeName(strings.TrimPrefix(targetRef, headsPrefix))
}
