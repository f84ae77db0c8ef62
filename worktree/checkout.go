package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/worktree/checkout"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// A userCheckout is a user's checkout.
type userCheckout struct {
	repo *Repo
	path string
	git  git.Repo // with the checkout's own git directory and index
	ref  string   // the requested branch: see checkoutsOf
	task string   // the task that lands, if known

	held     *lock.Lock     // while it is moved
	move     *checkout.Move // after follow
	logMoved func()         // the same
}

// checkoutsOf lists the checkouts that have a branch checked out, or have an operation
// on it in progress. It never includes tasks' worktrees, whatever their git
// directories contain.
func (r *Repo) checkoutsOf(ctx context.Context, ref string, hold *os.File) ([]userCheckout, error) {
	all, err := r.checkouts()
	if err != nil {
		return nil, fmt.Errorf("list the checkouts: %w", err)
	}
	var found []userCheckout
	for _, c := range all {
		c.git.Hold, c.ref = hold, ref
		head, err := c.repo.headOf(ctx, c.git.Dir)
		if err != nil && !file.Exists(filepath.Join(c.git.Dir, "HEAD")) {
			continue // git is just creating or removing it
		}
		if err != nil && !errors.Is(err, ErrDetached) {
			return nil, fmt.Errorf("read HEAD of %s: %w", c.path, err)
		}
		if head == ref || c.borrows(ref) {
			found = append(found, c)
		}
	}
	return found, nil
}

func (r *Repo) checkouts() ([]userCheckout, error) {
	mine, err := r.taskAdmins()
	if err != nil {
		return nil, err
	}
	admins, err := r.admins()
	if err != nil {
		return nil, err
	}
	var all []userCheckout
	if !r.bare {
		all = append(all, r.checkout(r.GitDir, r.Root))
	}
	for _, admin := range admins {
		path := r.adminPath(admin)
		if mine[admin] || strings.HasPrefix(path, filepath.Join(r.Root, worktreesDir)+"/") {
			continue
		}
		if _, err := os.Stat(path); path == "" || err != nil {
			continue // its directory does not exist, or its disk is not mounted
		}
		all = append(all, r.checkout(filepath.Join(r.GitDir, "worktrees", admin), path))
	}
	return all, nil
}

func (r *Repo) checkout(dir, path string) userCheckout {
	return userCheckout{repo: r, path: path, git: git.Repo{Dir: dir, WorkTree: path, Store: r.store}}
}

// taskAdmins returns the names of the git directories that agents can write.
func (r *Repo) taskAdmins() (map[string]bool, error) {
	names, err := r.taskNames()
	if err != nil {
		return nil, err
	}
	mine := map[string]bool{}
	for _, name := range names {
		rec, err := r.readRecord(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		mine[rec.Admin] = true
	}
	return mine, nil
}

// taskNames lists the tasks that have one of coven's directories.
func (r *Repo) taskNames() ([]string, error) {
	entries, err := os.ReadDir(r.ours("tasks"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// borrows reports whether a rebase or bisection of the branch is in progress, with
// HEAD detached.
func (c userCheckout) borrows(ref string) bool {
	for _, name := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		raw, err := os.ReadFile(filepath.Join(c.git.Dir, name))
		if err != nil {
			continue
		}
		branch := strings.TrimSpace(string(raw))
		if branch == ref || headsPrefix+branch == ref {
			return true
		}
	}
	return false
}

// An operation is a git operation that may pause for the user. While it is in
// progress, file exists in the git directory; next is the git command that continues
// it.
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
func (c userCheckout) ready(ctx context.Context) error {
	for _, op := range operations() {
		if _, err := os.Lstat(filepath.Join(c.git.Dir, op.file)); err == nil {
			return &CheckoutError{
				Path: c.path, Reason: op.name + " is in progress",
				Next: "git -C " + shellword.Quote(c.path) + " " + op.next,
			}
		}
	}
	if err := c.await(ctx, "HEAD.lock"); err != nil {
		return err
	}
	return c.awaitIndex(ctx)
}

// awaitIndex waits for another git process to unlock the index.
func (c userCheckout) awaitIndex(ctx context.Context) error { return c.await(ctx, "index.lock") }

func (c userCheckout) await(ctx context.Context, name string) error {
	err := awaitGone(ctx, filepath.Join(c.git.Dir, name))
	if busy, ok := errors.AsType[*BusyError](err); ok {
		return &CheckoutError{Path: c.path, Reason: busy.reason(), Next: busy.next()}
	}
	return err
}
