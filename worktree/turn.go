package worktree

import (
	"context"
	"strings"
)

// LandingTurn waits until it is nobody else's turn to land on the target, and
// keeps it so until release is called. Between Integrate and Land the target
// stays where it is, as far as covens move it: what was checked in a turn is
// checked once. It is no fence; Land verifies for itself. what is for people
// who wait: "land T".
func (r *Repo) LandingTurn(ctx context.Context, targetRef, what string) (release func(), err error) {
	l, err := r.lock(ctx, turnLock(targetRef), what)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

// TurnHolder returns whose turn it is to land on a target.
func (r *Repo) TurnHolder(targetRef string) (Holder, bool) {
	return holderOf(r.ours("locks", turnLock(targetRef)))
}

func turnLock(targetRef string) string {
	return "turn-" + SafeName(strings.TrimPrefix(targetRef, headsPrefix))
}
