package land

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/checkout"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// A CheckoutError describes why a user's checkout of the target cannot follow a landing. The checkout is
// unchanged.
type CheckoutError = checkout.Error

// LeftByLanding reports whether a git lock file was created by a landing, which may be running or killed.
func LeftByLanding(file string) bool { return checkout.Token(file) != "" }

// fullDisk adds to an error that the disk is full, if that is the case.
func fullDisk(r *repo.Repo, err error) error {
	for _, known := range []error{ErrTargetMoved, ErrBranchMoved, claim.ErrClaimLost, ErrCannotRebase, repo.ErrNoWorktree} {
		if errors.Is(err, known) {
			return err
		}
	}
	if _, refused := errors.AsType[*CheckoutError](err); refused || err == nil {
		return err
	}
	return checkout.Explain(err, r.Root, r.GitDir)
}

// Mover returns the checkout.Checkout that moves the index and the files.
func (c Checkout) Mover() *checkout.Checkout {
	return &checkout.Checkout{
		Git: c.Git, Ref: c.Ref, Task: c.Task, State: c.Repo.StatePath("moves", c.Key()), Token: c.token, NoSync: c.NoSync,
		Await: c.awaitIndex, Rescue: c.rescue, Settings: c.Repo.FiltersFor(c.Path),
	}
}

// Key identifies the checkout by its git directory.
func (c Checkout) Key() string {
	sum := sha256.Sum256([]byte(c.Git.Dir))
	return hex.EncodeToString(sum[:8])
}

// LockName returns the name of the checkout's lock.
func (c Checkout) LockName() string { return "checkout-" + c.Key() }

// hold locks the checkout, so that no other coven process moves it.
func (c *Checkout) hold(ctx context.Context) error {
	if c.held != nil {
		return nil
	}
	l, err := c.Repo.Lock(ctx, c.LockName(), "move "+c.Path)
	c.held = l
	return err
}

// Release releases the lock of a checkout that Follow has moved.
func (c *Checkout) Release() {
	if c.held != nil {
		c.held.Release()
		c.held = nil
	}
}

// Follow moves the checkout from one commit to another and keeps it locked until Finish or undoMove. If
// Follow fails, nothing has moved.
func (c *Checkout) Follow(ctx context.Context, from, to string) error {
	if err := c.hold(ctx); err != nil {
		return err
	}
	err := c.finishLeft(ctx)
	if err == nil {
		err = c.ready(ctx)
	}
	if err == nil {
		err = c.advance(ctx, from, to)
	}
	if err != nil {
		c.Release()
	}
	return err
}

// advance is Follow for a caller that has locked the checkout.
func (c *Checkout) advance(ctx context.Context, from, to string) (err error) {
	if c.logMoved, err = c.LogMove(from, to); err != nil {
		return err
	}
	if c.move, err = c.Mover().Advance(ctx, from, to); err == nil {
		return nil
	}
	back, logErr := c.LogMove(to, from)
	c.logMoved()
	if logErr == nil {
		back()
	}
	return errors.Join(err, logErr)
}

// LogMove logs, before the first file moves, that the checkout moves to another commit. Call moved after
// the last file has moved; it logs the end.
func (c *Checkout) LogMove(from, to string) (moved func(), err error) {
	edit := ref.Move(ref.MovedCheckout+c.Ref, to, from)
	if err := c.Repo.RefLog().Begin(edit); err != nil {
		return nil, err
	}
	return func() { c.Repo.RefLog().Done([]ref.Edit{edit}) }, nil
}

// Finish finishes a move after the target has moved.
func (c *Checkout) Finish(ctx context.Context) error {
	defer c.Release()
	defer c.logMoved()
	return c.move.Finish(ctx)
}

// settle is Finish, unless git was switching the checkout to a commit without the landing: git writes HEAD
// after it has unlocked the index, which Follow then moved. settle moves it back.
func (c *Checkout) settle(ctx context.Context, g git.Repo, intent integrate.Landing) error {
	if c.onTarget(ctx) {
		return c.Finish(ctx)
	}
	head, err := c.Git.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	within := false
	if err == nil {
		within, err = g.IsAncestor(ctx, intent.New, head)
	}
	if err == nil && !within || git.ExitCode(err) == 1 { // 1 means a branch without commits
		return c.moveBack(ctx, intent)
	}
	return errors.Join(err, c.Finish(ctx))
}

// undoMove undoes Follow, unless a concurrent commit by the user contains the landing's changes: then the
// checkout is already correct.
func (c *Checkout) undoMove(ctx context.Context, g git.Repo, intent integrate.Landing) error {
	swallowed, err := containsChanges(ctx, g, intent)
	if err != nil { // unknown: the next landing finishes or undoes it
		c.logMoved()
		c.Release()
		return err
	}
	if swallowed {
		return c.Finish(ctx)
	}
	return c.moveBack(ctx, intent)
}

// moveBack undoes Follow.
func (c *Checkout) moveBack(ctx context.Context, intent integrate.Landing) error {
	defer c.Release()
	defer c.logMoved()
	undone, err := c.LogMove(intent.New, intent.Old)
	if err != nil {
		return err
	}
	defer undone()
	return c.move.Undo(ctx)
}

// ClearLeft finishes or undoes a move that was interrupted by a kill.
func (c *Checkout) ClearLeft(ctx context.Context) error {
	if err := c.hold(ctx); err != nil {
		return err
	}
	defer c.Release()
	return c.finishLeft(ctx)
}

// clearLeft is ClearLeft for all checkouts of the user. ref and task are those of the landing, hold is its lock.
func clearLeft(ctx context.Context, r *repo.Repo, ref, task string, hold *os.File) error {
	all, err := Checkouts(r)
	for _, c := range all {
		c.Ref, c.Task, c.Git.Hold = ref, task, hold
		if file.Exists(c.Mover().State+".json") || LeftByLanding(filepath.Join(c.Git.Dir, "index.lock")) {
			err = errors.Join(err, c.ClearLeft(ctx))
		}
	}
	return err
}

// finishLeft is ClearLeft for a caller that has locked the checkout. The move may belong to another task
// and another branch.
func (c *Checkout) finishLeft(ctx context.Context) error {
	for {
		m, left, err := c.Mover().Left()
		if err == nil && left == nil && c.token == "" {
			return c.Mover().UnlockIndex() // another landing was killed while it had locked the index
		}
		if err != nil || left == nil {
			return err
		}
		if err := c.finishMove(ctx, m, left); err != nil {
			return fmt.Errorf("finish the killed landing in %s: %w", c.Path, err)
		}
	}
}

func (c *Checkout) finishMove(ctx context.Context, m *checkout.Move, left *checkout.Left) error {
	intent := integrate.Landing{Task: left.Task, Target: repo.Target{Ref: left.Ref}, Old: left.From, New: left.To}
	kept, err := mustStay(ctx, c.Repo, intent)
	if err != nil {
		return err
	}
	from, to := left.From, left.To
	if !kept {
		from, to = to, from
	}
	finished, err := c.LogMove(from, to)
	if err != nil {
		return err
	}
	if kept {
		err = m.Finish(ctx)
	} else {
		err = m.Undo(ctx)
	}
	finished()
	return err
}

// mustStay reports whether the checkout must stay at the new commit.
func mustStay(ctx context.Context, r *repo.Repo, intent integrate.Landing) (bool, error) {
	if there, err := r.Git().Has(ctx, intent.New, "commit"); err == nil && !there {
		return false, nil // no branch reaches the commit
	}
	landed, err := reached(ctx, r, intent)
	if errors.Is(err, ref.ErrNoRef) {
		return false, nil // the branch does not exist, so nothing landed
	}
	if err != nil || landed {
		return landed, err
	}
	return containsChanges(ctx, r.Git(), intent)
}

// containsChanges reports whether the target has moved to a commit that contains all changes of the landing.
func containsChanges(ctx context.Context, g git.Repo, intent integrate.Landing) (bool, error) {
	tip, err := g.Ref(ctx, intent.Target.Ref)
	if err != nil || tip == intent.Old {
		return false, err
	}
	changes, err := g.Changes(ctx, intent.Old, intent.New)
	if err != nil {
		return false, err
	}
	differ, err := g.Changes(ctx, intent.New, tip)
	if err != nil {
		return false, err
	}
	open := map[string]bool{}
	for _, change := range differ {
		open[change.Path] = true
	}
	for _, change := range changes {
		if open[change.Path] {
			return false, nil
		}
	}
	return true, nil
}

// rescue stores files that a landing has displaced from the checkout and whose content is neither the old
// nor the new one.
func (c Checkout) rescue(ctx context.Context, files map[string]string) error {
	task := c.Task
	if task == "" {
		task = "checkout"
	}
	w := c.Repo.Worktree(task, repo.Record{})
	w.Path, w.Name = c.Path, content.ScratchName // not a task name, so that no record is written
	ix, err := content.Open(w, w.Git(), "none")
	if err != nil {
		return err
	}
	defer ix.Drop()
	if err := rescue.TakeAs(ctx, ix, files); err != nil {
		return err
	}
	tree, err := ix.WriteTree(ctx)
	if err != nil {
		return err
	}
	_, err = rescue.StoreTree(ctx, w, "edited in "+c.Path+" while a landing changed it", tree)
	return err
}
