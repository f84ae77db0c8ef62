package worktree

import (
	"context"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The handles are of package repo, so that the packages of verbs can use them.
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
	BusyError = repo.BusyError
	// A BareError means that the directory is a bare repository.
	BareError = repo.BareError
)

// Errors of opening a repository and of finding its branches and worktrees.
var (
	ErrNotRepository = repo.ErrNotRepository
	ErrNoCommits     = repo.ErrNoCommits
	ErrBare          = repo.ErrBare
	ErrNoWorktree    = repo.ErrNoWorktree
	ErrDetached      = repo.ErrDetached
	ErrTaskBranch    = repo.ErrTaskBranch
	ErrUnknownBranch = repo.ErrUnknownBranch
)

// Open finds the repository that a directory is in: see repo.Open.
func Open(ctx context.Context, dir string) (*Repo, error) { return repo.Open(ctx, dir) }

// SafeName makes the ID of a task or session safe in paths and refs: see repo.SafeName.
func SafeName(id string) string { return names.SafeName(id) }

// Branch returns the branch of a task, without refs/heads/.
func Branch(taskID string) string { return names.Branch(taskID) }

// EnsureCovenDir creates the directory of coven in a checkout: see repo.EnsureCovenDir.
func EnsureCovenDir(root string) error { return repo.EnsureCovenDir(root) }

// SessionsIgnored reports whether git ignores the records of sessions: see repo.SessionsIgnored.
func SessionsIgnored(root string) (bool, error) { return repo.SessionsIgnored(root) }

// CurrentTree stores W's current content and returns its tree: tracked files and untracked ones that are not
// ignored, as in a commit. It equals the tree of the branch's tip if and only if there is nothing to commit.
func CurrentTree(ctx context.Context, w *Worktree) (string, error) { return content.Tree(ctx, w) }
