package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// git checks out a branch in three steps: it resolves the branch, writes the files and the index under
// index.lock, and then writes HEAD. If a landing moves the branch in between, the checkout is behind: HEAD
// names the branch, whose tip is the landed commit, but the index has the content of the old tip, so that the
// next commit -a would undo the landing.
//
// Therefore a landing locks the indexes of all checkouts while it moves the target, waits for the git processes that run
// in them (see awaitGits), and looks at their HEADs again before it unlocks them. A git process that is stopped between
// two of its steps escapes this. CatchUp finds its checkout later: git has not written the index since it wrote HEAD, coven has moved the
// branch from a commit to its tip, and the index has the old content of all paths that differ. Without the
// first condition, the user could have staged the reversal.

// lockOthers locks the indexes of the user's checkouts that have not moved. It moves those that have come to the
// target since the caller listed them, and returns all that have moved. Checkouts that other landings or git
// processes hold for long stay unlocked.
func (l *landing) lockOthers(ctx context.Context, moved []Checkout, intent integrate.Landing) (others, all []Checkout, err error) {
	checkouts, err := Checkouts(l.w.Repo)
	if err != nil {
		return nil, moved, err
	}
	for _, c := range checkouts {
		if slices.ContainsFunc(moved, func(m Checkout) bool { return m.Git.Dir == c.Git.Dir }) {
			continue
		}
		c.Git.Hold, c.Ref, c.Task, c.NoSync = l.git.Hold, intent.Target.Ref, intent.Task, l.req.NoSync
		if !c.lockIndex(ctx) {
			continue
		}
		if !c.onTarget(ctx) {
			others = append(others, c)
			continue
		}
		if err := c.Follow(ctx, intent.Old, intent.New); err != nil {
			return append(others, c), moved, err
		}
		moved = append(moved, c)
	}
	failpoint.Point("land.others.locked")
	return others, moved, nil
}

func (c *Checkout) onTarget(ctx context.Context) bool {
	head, err := c.Repo.HeadOf(ctx, c.Git.Dir)
	return err == nil && head == c.Ref
}

// lockTimeout limits the time to wait for another landing that uses a checkout. That landing may be waiting for
// this one.
const lockTimeout = 2 * time.Second

// lockIndex locks the index of a checkout, and reports whether it could.
func (c *Checkout) lockIndex(ctx context.Context) bool {
	info, err := os.Lstat(filepath.Join(c.Git.Dir, "index.lock"))
	if err == nil && lock.Age(info) > oldLock {
		return false
	}
	soon, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if c.hold(soon) != nil {
		return false
	}
	m := c.Mover()
	if c.finishLeft(ctx) != nil || m.LockIndex(ctx) != nil {
		c.Release()
		return false
	}
	c.token = m.Token
	return true
}

// oldLock is the age from which a lock file of git counts as left over by a killed process.
const oldLock = time.Minute

// unlock ends lockOthers.
func unlock(others []Checkout) {
	for i := range others {
		_ = others[i].Mover().UnlockIndex() // the next landing tries again
		others[i].Release()
	}
}

// catch moves the checkouts that have come to the target since lockOthers.
func (l *landing) catch(ctx context.Context, others []Checkout, intent integrate.Landing) {
	for i := range others {
		if others[i].onTarget(ctx) {
			_ = others[i].catchUpFrom(ctx, intent.Old, intent.New) // if it fails, the next landing tries again
		}
	}
}

// CatchUp moves the checkouts of a branch that are behind to its tip. The caller has locked the target. The
// error is a *CheckoutError if a checkout cannot move.
func CatchUp(ctx context.Context, r *repo.Repo, name string, hold *os.File) error {
	checkouts, err := CheckoutsOf(ctx, r, name, hold)
	if err != nil {
		return err
	}
	tip, err := r.Git().Ref(ctx, name)
	if errors.Is(err, ref.ErrNoRef) {
		return nil
	}
	for _, c := range checkouts {
		if err == nil {
			err = c.catchUp(ctx, tip)
		}
	}
	return err
}

func (c Checkout) catchUp(ctx context.Context, tip string) error {
	from, err := c.behindAt(ctx, tip)
	if err != nil || from == "" {
		return err
	}
	return c.catchUpFrom(ctx, from, tip)
}

// catchUpFrom moves a checkout that is behind.
func (c *Checkout) catchUpFrom(ctx context.Context, from, tip string) error {
	err := c.Follow(ctx, from, tip)
	if blocked, ok := errors.AsType[*CheckoutError](err); ok && len(blocked.Files) > 0 {
		files := make([]string, len(blocked.Files))
		for i, name := range blocked.Files {
			files[i] = shellword.Word(name)
		}
		blocked.Reason = fmt.Sprintf("it was checked out while a landing moved the branch and has the files of %.10s, and files are in the way", from)
		blocked.Next = "copy them, and run: git -C " + shellword.Quote(c.Path) + " checkout " + from[:10] + " -- " + strings.Join(files, " ")
		return errors.Join(blocked, regularfile.Replace(c.behindPath(), []byte(from), 0o644))
	}
	if err != nil {
		return err
	}
	now, err := c.Repo.Git().Ref(ctx, c.Ref)
	if err != nil || now != tip { // the user has committed
		return errors.Join(err, c.undoMove(ctx, c.Git, integrate.Landing{Target: repo.Target{Ref: c.Ref}, Old: from, New: tip}))
	}
	return errors.Join(c.Finish(ctx), c.forgetBehind())
}

// behindPath is the file with the commit of a checkout that is behind and could not move.
func (c Checkout) behindPath() string { return c.Repo.StatePath("moves", c.Key()+".behind") }

// Behind returns the commit whose content the checkout has if it is behind, or "".
func (c Checkout) Behind(ctx context.Context) (string, error) {
	var err error
	if c.Ref, err = c.Repo.HeadOf(ctx, c.Git.Dir); errors.Is(err, repo.ErrDetached) {
		return "", nil
	}
	var tip string
	if err == nil {
		tip, err = c.Repo.Git().Ref(ctx, c.Ref)
	}
	if errors.Is(err, ref.ErrNoRef) || err != nil && !file.Exists(filepath.Join(c.Git.Dir, "HEAD")) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return c.behindAt(ctx, tip)
}

func (c Checkout) behindAt(ctx context.Context, tip string) (string, error) {
	known, err := regularfile.Read(c.behindPath(), int64(len(tip)))
	if err == nil {
		at, err := c.Mover().Has(ctx, string(known), tip)
		if err != nil || at {
			return string(known), err
		}
		return "", c.forgetBehind()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if !c.justCheckedOut() {
		return "", nil
	}
	log := c.Repo.RefLog()
	end, err := log.End()
	if err != nil {
		return "", err
	}
	moves, err := log.Since(ref.Position{}, end)
	if err != nil {
		return "", err
	}
	behind := ""
	for from := range moves.Before(c.Ref, tip) {
		if there, err := c.Repo.Git().Has(ctx, from, "commit"); err != nil || !there {
			return behind, err
		}
		if at, err := c.Mover().Has(ctx, from, tip); err != nil || !at {
			return behind, err
		}
		behind = from
	}
	return behind, nil
}

func (c Checkout) forgetBehind() error {
	if err := os.Remove(c.behindPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// justCheckedOut reports whether git has not written the index since it wrote HEAD.
func (c Checkout) justCheckedOut() bool {
	index, err := os.Lstat(filepath.Join(c.Git.Dir, "index"))
	head, err2 := os.Lstat(filepath.Join(c.Git.Dir, "HEAD"))
	return err == nil && err2 == nil && !index.ModTime().After(head.ModTime())
}
