package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/checkout"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Checkout is a user's checkout.
type Checkout struct {
	Repo *repo.Repo
	Path string
	Git  git.Repo // with the git directory and index of the checkout
	Ref  string   // the requested branch, see CheckoutsOf
	Task string   // the task that lands, if known
	// NoSync is that of Request.
	NoSync bool

	held     *lock.Lock     // while the checkout is being moved, or its index is locked
	token    string         // set by lockIndex
	move     *checkout.Move // set by Follow
	logMoved func()         // set by Follow
}

// CheckoutsOf lists the checkouts in which a branch is checked out or an operation on it is in progress. It
// never includes worktrees of tasks, regardless of the contents of their git directories.
func CheckoutsOf(ctx context.Context, r *repo.Repo, ref string, hold *os.File) ([]Checkout, error) {
	all, err := Checkouts(r)
	if err != nil {
		return nil, fmt.Errorf("list the checkouts: %w", err)
	}
	var found []Checkout
	for _, c := range all {
		c.Git.Hold, c.Ref = hold, ref
		head, err := c.Repo.HeadOf(ctx, c.Git.Dir)
		if err != nil && !file.Exists(filepath.Join(c.Git.Dir, "HEAD")) {
			continue // git is creating or removing it
		}
		if err != nil && !errors.Is(err, repo.ErrDetached) {
			return nil, fmt.Errorf("read HEAD of %s: %w", c.Path, err)
		}
		if head == ref || c.borrows(ref) {
			found = append(found, c)
		}
	}
	return found, nil
}

// Checkouts lists the checkouts of the user: all except the worktrees of tasks.
func Checkouts(r *repo.Repo) ([]Checkout, error) {
	mine, err := r.TaskAdmins()
	if err != nil {
		return nil, err
	}
	admins, err := r.Admins()
	if err != nil {
		return nil, err
	}
	var all []Checkout
	if !r.Bare {
		all = append(all, CheckoutOf(r, r.GitDir, r.Root))
	}
	for _, admin := range admins {
		path := r.AdminPath(admin)
		if mine[admin] || r.InWorktreeDir(path) {
			continue
		}
		if _, err := os.Stat(path); path == "" || err != nil {
			continue // its directory does not exist, or its disk is not mounted
		}
		all = append(all, CheckoutOf(r, filepath.Join(r.GitDir, "worktrees", admin), path))
	}
	return all, nil
}

// CheckoutOf returns a handle on the checkout at path with the git directory dir.
func CheckoutOf(r *repo.Repo, dir, path string) Checkout {
	return Checkout{Repo: r, Path: path, Git: git.Repo{Dir: dir, WorkTree: path, Store: r.Store}}
}

// borrows reports whether a rebase or bisection of the branch is in progress, during which HEAD is
// detached.
func (c Checkout) borrows(ref string) bool {
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		raw, err := file.Read(filepath.Join(c.Git.Dir, name), object.MaxGitFile)
		if err != nil {
			continue
		}
		branch := strings.TrimSpace(string(raw))
		if branch == ref || names.HeadsPrefix+branch == ref {
			return true
		}
	}
	return false
}

// An operation is a git operation that may pause for the user. While it is in progress, file exists in the
// git directory. next is the git command that continues it.
type operation struct{ file, name, next string }

func operations() []operation {
	return []operation{
		{"rebase-merge", "a rebase", "rebase --continue"},
		{"rebase-apply", "a rebase", "rebase --continue"},
		{"MERGE_HEAD", "a merge", "merge --continue"},
		{"CHERRY_PICK_HEAD", "a cherry-pick", "cherry-pick --continue"},
		{"REVERT_HEAD", "a revert", "revert --continue"},
		{"sequencer", "a cherry-pick or revert", "status"},
		{"BISECT_LOG", "a bisection", "bisect reset"},
	}
}

// ready checks that no operation is in progress in the checkout.
func (c Checkout) ready(ctx context.Context) error {
	for _, op := range operations() {
		if _, err := os.Lstat(filepath.Join(c.Git.Dir, op.file)); err == nil {
			return &CheckoutError{
				Path: c.Path, Reason: op.name + " is in progress",
				Next: "git -C " + shellword.Quote(c.Path) + " " + op.next,
			}
		}
	}
	if err := c.await(ctx, "HEAD.lock"); err != nil {
		return err
	}
	if c.token != "" {
		return nil
	}
	return c.awaitIndex(ctx)
}

// awaitIndex waits for another git process to unlock the index.
func (c Checkout) awaitIndex(ctx context.Context) error { return c.await(ctx, "index.lock") }

func (c Checkout) await(ctx context.Context, name string) error {
	err := lock.AwaitGone(ctx, filepath.Join(c.Git.Dir, name))
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		return &CheckoutError{Path: c.Path, Reason: busy.Reason(), Next: busy.Next()}
	}
	return err
}
