// Package land lands checked changes on the target branch, one landing at a time, and moves the checkouts
// of the target along.
package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Errors of Land that callers can handle.
var (
	// ErrTargetMoved means that the target has changed since the candidate was integrated: integrate, check
	// and land again.
	ErrTargetMoved = errors.New("target has moved")
	// ErrBranchMoved means that the task's branch has changed since the candidate was created.
	ErrBranchMoved = errors.New("branch of the task has moved")
	// ErrCannotRebase means that replaying the commits one by one does not result in the checked tree.
	ErrCannotRebase = errors.New("rebasing does not result in the checked tree: use strategy squash or merge")
)

// A Strategy determines how a branch becomes part of its target.
type Strategy string

// The strategies.
const (
	Squash Strategy = "squash" // one commit; the default
	Merge  Strategy = "merge"  // a merge commit on top of the target and the branch
	Rebase Strategy = "rebase" // the branch's commits, replayed
)

// A Journal records a landing before its target moves. The record must be durable when Intent returns.
type Journal interface {
	Intent(intent integrate.Landing) error
}

// A Request describes a landing.
type Request struct {
	Landing  integrate.Landing
	Strategy Strategy // empty for Squash
	Message  string   // of the commit; unused by Rebase
	ClaimOid string   // the claim under which the task ran
	Journal  Journal
	Hooks    commit.HookRunner // nil to run none of the repository's hooks
	// Push moves the target at its remote, before its remote-tracking ref moves here. An error means that it has not moved. Push is nil for a local target.
	Push func(ctx context.Context, l integrate.Landing) error
	// NoSync means that the landing does not wait until the checkouts and the objects are on disk. After a power
	// failure, files may then be empty, and the target may name a commit that does not exist.
	NoSync bool
}

// Land makes the candidate the target's tip. It moves the target together with all of its checkouts, or
// changes nothing. Only one landing per target runs at a time.
//
// The following errors mean that nothing has changed: ErrTargetMoved, ErrBranchMoved, ErrClaimLost,
// ErrCannotRebase, ErrNoWorktree if the worktree does not exist, *HookError if a hook of the repository
// refuses, *SignError if the commit cannot be signed, *CheckoutError if a user's checkout cannot follow,
// and *BusyError if another git process holds a lock.
func Land(ctx context.Context, w *repo.Worktree, req Request) (integrate.Landing, error) {
	landed, err := LandStack(ctx, Part{w, req})
	if err != nil {
		return integrate.Landing{}, err
	}
	return landed[0], nil
}

// A Part is the landing of one task in a LandStack.
type Part struct {
	Worktree *repo.Worktree
	Request  Request
}

// LandStack is Land for a stack of candidates: each except the first is stacked on the previous one, see
// Stack. Each becomes a separate commit, and the target moves once, to the last. All intents are recorded
// before anything moves.
func LandStack(ctx context.Context, parts ...Part) ([]integrate.Landing, error) {
	w, target := parts[0].Worktree, parts[0].Request.Landing.Target
	for _, p := range parts {
		if err := p.valid(len(parts)); err != nil {
			return nil, fmt.Errorf("land %s on %s: %w", p.Worktree.TaskID, target.Branch, err)
		}
	}
	lock, err := w.Repo.Lock(ctx, names.TargetLock(target.Branch), "land "+w.TaskID)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	failpoint.Point("land.locked")
	var stack landings
	for _, p := range parts {
		l := &landing{w: p.Worktree, req: p.Request, git: w.Repo.Git()}
		l.git.Hold = lock.File()
		stack = append(stack, l)
	}
	landed, err := stack.run(ctx)
	if err != nil {
		err = fullDisk(w.Repo, err)
		return nil, fmt.Errorf("land %s on %s: %w", w.TaskID, target.Branch, err)
	}
	failpoint.Point("land.return")
	return landed, nil
}

// valid checks a part of a stack of n parts.
func (p Part) valid(n int) error {
	switch {
	case p.Request.ClaimOid == "" || p.Request.Journal == nil:
		return errors.New("a landing needs a claim and a journal")
	case n > 1 && p.Request.Strategy == Rebase:
		return errors.New("rebased commits do not land in a stack")
	}
	return p.Worktree.CheckExists()
}

// A landing is one change of a LandStack, which holds the target's lock.
type landing struct {
	w    *repo.Worktree
	req  Request
	git  git.Repo
	onto string            // the commit below this one
	done integrate.Landing // the landing, with New once its commit exists
}

// landings are the changes of a LandStack, from bottom to top.
type landings []*landing

func (s landings) run(ctx context.Context) ([]integrate.Landing, error) {
	for _, l := range s {
		if err := l.check(ctx); err != nil {
			return nil, err
		}
	}
	first := s[0].req.Landing
	tip, err := s[0].git.Commit(ctx, first.Old)
	if err != nil {
		return nil, err
	}
	if len(s) == 1 && tip.Tree == first.Tree {
		first.Task, first.New = s[0].w.TaskID, first.Old
		return []integrate.Landing{first}, nil
	}
	if err := s[0].unobstructed(ctx); err != nil {
		return nil, err
	}
	failpoint.Point("land.merged")
	if err := s.commit(ctx); err != nil {
		return nil, err
	}
	last := s[len(s)-1]
	hook := refHook{landing: last, intent: last.done}
	if err := hook.prepared(ctx); err != nil {
		return nil, err
	}
	err = s.moveRecorded(context.WithoutCancel(ctx))
	hook.ended(ctx, err)
	return s.landed(), err
}

// commit creates the commits to land.
func (s landings) commit(ctx context.Context) error {
	onto := s[0].req.Landing.Old
	for _, l := range s {
		l.onto, l.done = onto, l.req.Landing
		var err error
		if l.done.New, err = l.commit(ctx); err != nil {
			return err
		}
		l.done.Task, onto = l.w.TaskID, l.done.New
	}
	failpoint.Point("land.commit")
	for _, l := range s {
		if l.done.Head = ""; l.done.New != onto {
			l.done.Head = onto
		}
		if err := l.w.Keep(ctx, names.KeepLanding, l.done.New); err != nil {
			return err
		}
	}
	failpoint.Point("land.kept")
	return nil
}

func (s landings) landed() []integrate.Landing {
	var all []integrate.Landing
	for _, l := range s {
		all = append(all, l.done)
	}
	return all
}

// moveRecorded records all intents durably, then moves the target.
func (s landings) moveRecorded(ctx context.Context) error {
	for _, l := range s {
		if err := l.req.Journal.Intent(l.done); err != nil {
			return fmt.Errorf("record the landing: %w", err)
		}
		failpoint.Point("land.intent")
	}
	return s.move(ctx)
}

// check verifies that the candidate has not changed and does not touch reserved paths.
func (l *landing) check(ctx context.Context) error {
	c := l.req.Landing
	if err := l.stillThere(ctx); err != nil {
		return err
	}
	branch, err := l.w.Tip(ctx)
	if err != nil {
		return err
	}
	if branch != c.Tip {
		return ErrBranchMoved
	}
	tree, err := content.WithReserved(ctx, l.w.Repo, c.Tree, c.Old)
	if err == nil && tree != c.Tree {
		err = errors.New("the candidate changes .beads or .coven/sessions: integrate it again")
	}
	return err
}

// stillThere checks the conditions that the ref transaction will verify again.
func (l *landing) stillThere(ctx context.Context) error {
	c := l.req.Landing
	tip, err := l.git.Ref(ctx, c.Target.Ref)
	if err != nil {
		return err
	}
	if tip != c.Old {
		return ErrTargetMoved
	}
	held, err := l.git.Ref(ctx, claim.Ref(l.w.TaskID))
	if errors.Is(err, ref.ErrNoRef) || err == nil && held != l.req.ClaimOid {
		return claim.ErrClaimLost
	}
	return err
}

// unobstructed checks, before anything is recorded, that no other process is using the target or one of its
// checkouts.
func (l *landing) unobstructed(ctx context.Context) error {
	ref := l.req.Landing.Target.Ref
	if err := clearLeft(ctx, l.w.Repo, ref, "", l.git.Hold); err != nil {
		return err
	}
	checkouts, err := CheckoutsOf(ctx, l.w.Repo, ref, l.git.Hold)
	if err != nil {
		return err
	}
	for _, c := range checkouts {
		if err := c.ready(ctx); err != nil {
			return err
		}
	}
	if err := CatchUp(ctx, l.w.Repo, ref, l.git.Hold); err != nil {
		return err
	}
	if err := l.sync(checkouts); err != nil { // before the checkouts are locked, because it may take long
		return err
	}
	return lock.AwaitGone(ctx, filepath.Join(l.w.Repo.GitDir, ref+".lock"))
}

// move moves the checkouts, and then the target, if all claims are still valid.
func (s landings) move(ctx context.Context) error {
	first, intent := s[0], s[0].done.Moved()
	failpoint.Point("land.checkout.before")
	held, err := first.holdCheckouts(ctx, intent)
	if err != nil {
		return err
	}
	defer unlock(held.others)
	failpoint.Point("land.checkout.after")
	if push := first.req.Push; push != nil {
		if err := push(ctx, intent); err != nil {
			return errors.Join(err, first.moveBack(ctx, held.moved, intent))
		}
	}
	failpoint.Point("land.ref.before")
	edits := []ref.Edit{ref.Move(intent.Target.Ref, intent.New, intent.Old)}
	var names []string
	for _, l := range s {
		edits = append(edits, ref.Verify(claim.Ref(l.w.TaskID), l.req.ClaimOid))
		names = append(names, l.w.Name)
	}
	err = first.w.Repo.Transact(ctx, first.git, "coven: land "+strings.Join(names, ", "), edits...)
	if err != nil && first.req.Push == nil { // a git fetch also moves a remote-tracking ref
		if cause := s.stillThere(ctx); cause != nil {
			err = cause
		}
		return errors.Join(err, first.moveBack(ctx, held.moved, intent))
	}
	failpoint.Point("land.ref.after")
	if !first.req.NoSync {
		_ = regularfile.SyncDir(filepath.Dir(filepath.Join(first.w.Repo.GitDir, intent.Target.Ref))) // git has synced the file
	}
	awaitGits(ctx, held.checkouts(), held.gits) // those that began since may have looked up the branch before it moved
	first.catch(ctx, held.others, intent)
	return first.settle(ctx, held.moved, intent)
}

// A hold is the state of the user's checkouts while the target moves.
type hold struct {
	moved  []Checkout // those of the target, which have moved
	others []Checkout // the others, with a locked index
	gits   []int      // git processes in them that run for long
}

func (h hold) checkouts() []Checkout { return slices.Concat(h.moved, h.others) }

// holdCheckouts moves the checkouts of the target and locks the others. If it fails, nothing has moved.
func (l *landing) holdCheckouts(ctx context.Context, intent integrate.Landing) (h hold, err error) {
	h.moved, err = l.moveCheckouts(ctx, intent)
	if err == nil {
		h.others, h.moved, err = l.lockOthers(ctx, h.moved, intent)
	}
	if err == nil {
		h.gits = awaitGits(ctx, h.checkouts(), nil)
		err = putBack(ctx, h.moved)
	}
	if err == nil {
		err = l.sync(h.moved)
	}
	if err != nil {
		err = errors.Join(err, l.moveBack(ctx, h.moved, intent))
		unlock(h.others)
	}
	return h, err
}

// putBack restores the new files that git processes have removed, see awaitGits.
func putBack(ctx context.Context, moved []Checkout) error {
	for _, c := range moved {
		if err := c.move.PutBack(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sync waits until the objects and the files of checkouts are on disk.
func (l *landing) sync(checkouts []Checkout) error {
	if l.req.NoSync {
		return nil
	}
	paths := []string{l.w.Repo.GitDir}
	for _, c := range checkouts {
		paths = append(paths, c.Path)
	}
	synced := map[uint64]bool{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if device := file.DeviceOf(info); !synced[device] {
			synced[device] = true
			if err := regularfile.SyncFS(path); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s landings) stillThere(ctx context.Context) error {
	for _, l := range s {
		if err := l.stillThere(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *landing) moveCheckouts(ctx context.Context, intent integrate.Landing) ([]Checkout, error) {
	checkouts, err := CheckoutsOf(ctx, l.w.Repo, intent.Target.Ref, l.git.Hold)
	if err != nil {
		return nil, err
	}
	var moved []Checkout
	for _, c := range checkouts {
		c.Task, c.NoSync = intent.Task, l.req.NoSync
		if err := c.Follow(ctx, intent.Old, intent.New); err != nil {
			return moved, err
		}
		moved = append(moved, c)
		failpoint.Point("land.checkout.each")
	}
	return moved, nil
}

// settle ends the moves of the checkouts after the target has moved.
func (l *landing) settle(ctx context.Context, moved []Checkout, intent integrate.Landing) error {
	var failed error
	for _, c := range moved {
		failed = errors.Join(failed, c.settle(ctx, l.git, intent))
	}
	return failed
}

func (l *landing) moveBack(ctx context.Context, moved []Checkout, intent integrate.Landing) error {
	var failed error
	for _, c := range moved {
		if err := c.undoMove(ctx, l.git, intent); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// PatchID returns the PatchID of a candidate's diff.
func PatchID(ctx context.Context, w *repo.Worktree, c integrate.Landing) (string, error) {
	start, err := w.Start(ctx, c.Old)
	if err != nil {
		return "", err
	}
	return diff.PatchID(ctx, w.Repo, start.Commit, c.Tree)
}
