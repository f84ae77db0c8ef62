package worktree

import (
	"context"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/covendir"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// The types are declared in package repo, so that the packages below this one can use them.
type (
	// A Repo is a repository with a checkout. It is safe for concurrent use.
	Repo = repo.Repo
	// A Worktree is the checkout of one task.
	Worktree = repo.Worktree
	// A Target is a branch that tasks land on.
	Target = repo.Target
	// A Pool limits the files of landed worktrees that are kept.
	Pool = repo.Pool
	// Sparse selects the files of new worktrees.
	Sparse = repo.Sparse
	// A BusyError means that a lock file of git exists.
	BusyError = lock.BusyError
	// A BareError means that the directory is a bare repository.
	BareError = repo.BareError
)

// Errors from opening a repository and finding its branches and worktrees.
var (
	ErrNotRepository = repo.ErrNotRepository
	ErrNoCommits     = repo.ErrNoCommits
	ErrBare          = repo.ErrBare
	ErrNoWorktree    = repo.ErrNoWorktree
	ErrDetached      = repo.ErrDetached
	ErrTaskBranch    = repo.ErrTaskBranch
	ErrUnknownBranch = repo.ErrUnknownBranch
)

// Open finds the repository that contains dir. See repo.Open.
func Open(ctx context.Context, dir string) (*Repo, error) { return repo.Open(ctx, dir) }

// OpenEmpty is like Open, but the repository need not have a commit. No task can run in it.
func OpenEmpty(ctx context.Context, dir string) (*Repo, error) { return repo.OpenEmpty(ctx, dir) }

// MainIsSparse reports whether the main checkout is sparse, in git's cone mode. New worktrees can be sparse in the same way.
func MainIsSparse(ctx context.Context, r *Repo) (bool, error) {
	on, cones, err := sparse.OfMain(ctx, r)
	return on && cones, err
}

// SafeName makes the ID of a task or session safe for use in paths and refs. See names.SafeName.
func SafeName(id string) string { return names.SafeName(id) }

// EnsureCovenDir creates coven's directory in a checkout. See covendir.Ensure.
func EnsureCovenDir(root string) error { return covendir.Ensure(root) }

// SessionsIgnored reports whether git ignores the session records. See covendir.SessionsIgnored.
func SessionsIgnored(root string) (bool, error) { return covendir.SessionsIgnored(root) }

// CurrentTree stores the worktree's current content and returns its tree. As in a commit, the tree contains
// tracked files and untracked files that are not ignored. It equals the tree of the branch's tip if and
// only if there is nothing to commit.
func CurrentTree(ctx context.Context, w *Worktree) (string, error) { return content.Tree(ctx, w) }
