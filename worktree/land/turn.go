package land

import (
	"context"
	"strings"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Holder identifies the process that holds a lock.
type Holder = lock.Holder

// A Turn is the exclusive right to land on a target. During a turn no other coven process moves the target,
// so that checks need not be repeated between integrate.Merge and Land. Land does not rely on it.
type Turn struct{ lock *lock.Lock }

// TakeTurn waits for the turn to land on a target. Waiting processes and goroutines are served in order.
// Other waiters see the description of the operation in what, such as "land T".
func TakeTurn(ctx context.Context, r *repo.Repo, targetRef, what string) (*Turn, error) {
	t, err := takeTicket(ctx, r, targetRef, what)
	if err != nil {
		return nil, err
	}
	defer t.drop()
	if err := t.awaitFront(ctx); err != nil {
		return nil, err
	}
	l, err := r.Lock(ctx, turnLock(targetRef), what)
	if err != nil {
		return nil, err
	}
	return &Turn{lock: l}, nil
}

// Doing sets the description of the current work that other waiters see: "runs its checks".
func (t *Turn) Doing(what string) { t.lock.SetDoing(what) }

// Release ends the turn.
func (t *Turn) Release() { t.lock.Release() }

// A Line is the queue for landing on a target.
type Line struct {
	Turn    lock.Holder   // zero if the turn is free or the holder's record is not readable
	Waiting []lock.Holder // in order
}

// ReadLine returns the queue of a target. It includes only live processes.
func ReadLine(r *repo.Repo, targetRef string) (Line, error) {
	turn, _ := r.Locks.Holder(turnLock(targetRef))
	line := Line{Turn: turn}
	numbers, err := tickets(r, targetRef)
	if err != nil {
		return line, err
	}
	for _, n := range numbers {
		holder, held := lock.HolderOf(TicketFile(r, targetRef, n))
		both := holder.PID == turn.PID && holder.What == turn.What // it has just got the turn
		if held && holder.PID > 0 && !both {
			line.Waiting = append(line.Waiting, holder)
		}
	}
	return line, nil
}

func turnLock(targetRef string) string { return "turn-" + targetName(targetRef) }

func targetName(targetRef string) string {
	return names.SafeName(strings.TrimPrefix(targetRef, names.HeadsPrefix))
}
