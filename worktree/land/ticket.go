package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A ticket is a place in the queue for landing on a target: a locked file whose name is its number and
// whose content is its holder. The ticket of a killed process is not locked, so no process waits for it.
type ticket struct {
	repo   *repo.Repo
	target string
	number int
	lock   *lock.Lock
}

// takeTicket takes the last place in the queue. It assigns the number and locks the new ticket under a
// common lock, so that later processes never see an unlocked ticket.
func takeTicket(ctx context.Context, r *repo.Repo, targetRef, what string) (*ticket, error) {
	l, err := r.Lock(ctx, "line-"+targetName(targetRef), what)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	numbers, err := tickets(r, targetRef)
	if err != nil {
		return nil, err
	}
	t := &ticket{repo: r, target: targetRef, number: 1}
	if len(numbers) > 0 {
		t.number = numbers[len(numbers)-1] + 1
	}
	path := TicketFile(r, targetRef, t.number)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("wait for the turn to land: %w", err)
	}
	r.Share(filepath.Dir(path))
	file, err := lockedfile.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("wait for the turn to land: %w", err)
	}
	r.Share(path)
	t.lock = lock.New(file, what)
	r.Memo.Tickets.Store(path, make(chan struct{}))
	failpoint.Point("ticket.taken")
	return t, nil
}

// awaitFront waits until no ticket with a lower number is held.
func (t *ticket) awaitFront(ctx context.Context) error {
	for {
		before, err := t.before()
		if err != nil || before == 0 {
			return err
		}
		if err := t.awaitGone(ctx, before); err != nil {
			return err
		}
	}
}

// before returns the number of the ticket directly before this one, or 0 if there is none.
func (t *ticket) before() (int, error) {
	numbers, err := tickets(t.repo, t.target)
	if err != nil {
		return 0, err
	}
	at, _ := slices.BinarySearch(numbers, t.number)
	if at == 0 {
		return 0, nil
	}
	return numbers[at-1], nil
}

// awaitGone waits until a ticket is no longer held. It removes the file that a killed process left. The
// number cannot be reused, because this ticket's number is higher.
func (t *ticket) awaitGone(ctx context.Context, number int) error {
	path := TicketFile(t.repo, t.target, number)
	if given, ours := t.repo.Memo.Tickets.Load(path); ours { // waiting for the file would occupy a thread
		select {
		case <-given.(chan struct{}):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for the turn to land: %w", context.Cause(ctx))
		}
	}
	file, err := lock.Await(ctx, func() (*lockedfile.File, error) { return lockedfile.Open(path) }, func() {})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("wait for the turn to land: %w", err)
	}
	defer file.Close() //nolint:errcheck // read only
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("wait for the turn to land: %w", err)
	}
	return nil
}

// drop removes and releases the ticket.
func (t *ticket) drop() {
	path := TicketFile(t.repo, t.target, t.number)
	_ = os.Remove(path) // an unlocked ticket is ignored
	t.lock.Release()
	if given, ours := t.repo.Memo.Tickets.LoadAndDelete(path); ours {
		close(given.(chan struct{}))
	}
}

// tickets returns the numbers of the tickets in a queue in ascending order, including those of killed
// processes.
func tickets(r *repo.Repo, targetRef string) ([]int, error) {
	entries, err := os.ReadDir(LineDir(r, targetRef))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read who waits to land: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// LineDir returns the directory with the tickets for landing on a target.
func LineDir(r *repo.Repo, targetRef string) string {
	return r.StatePath("lines", targetName(targetRef))
}

// TicketFile returns the path of a ticket's file.
func TicketFile(r *repo.Repo, targetRef string, number int) string {
	return filepath.Join(LineDir(r, targetRef), strconv.Itoa(number))
}
