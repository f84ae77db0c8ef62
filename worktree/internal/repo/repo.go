// Package repo defines the handles of package worktree and the operations that all packages need: find a
// repository and its worktrees, record a worktree, lock, change refs, and make commits.
//
// Repo and Worktree have no methods that read or change the files of a worktree. Those are functions in the
// importing packages, which take a handle.
//
// Refs are changed only in transactions (Repo.Transact). Each is logged before and after, so that coven's
// own changes are not attributed to an agent's step.
package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Errors of Open.
var (
	// ErrNotRepository means that the directory is not inside a git repository.
	ErrNotRepository = exit.Sentinel(exit.Usage, "git init", "not in a git repository")
	// ErrNoCommits means that the repository, or the branch, has no commit yet.
	ErrNoCommits = exit.Sentinel(exit.Usage, "git commit --allow-empty -m first", "repository has no commits: create one with git commit")
	// ErrBare matches a *BareError.
	ErrBare = exit.Sentinel(exit.Usage, "git clone . ../checkout", "the repository is bare")
)

// A Repo is a repository with a checkout. It is safe for concurrent use.
type Repo struct {
	Root     string // top of the main checkout; for a bare repository see bareRoot
	Checkout string // top of the checkout that Open was called in
	GitDir   string // the git directory shared by all checkouts

	// Redact removes secrets from the message of each commit that coven creates. It may be nil.
	Redact func(message string) string
	// Hidden reports whether the programs of tasks must not read a file, so that it is not copied to
	// worktrees. It may be nil.
	Hidden func(path string) bool

	// WorktreeDir is the template of the directories of new worktrees, with TaskField and RepoField, relative to Root or
	// absolute. If it is empty, see BesidePlace.
	WorktreeDir string
	// BranchTemplate is the template of the branches of new worktrees, with TaskField and SlugField. If it is empty, it is
	// DefaultBranch.
	BranchTemplate string
	// Pool limits the files of landed worktrees that are kept for reuse.
	Pool Pool
	// Sparse selects the files of new worktrees.
	Sparse Sparse
	// Submodules means that new worktrees get the files of submodules.
	Submodules bool
	// Origin is the repository whose objects, hooks and ignored files a scratch repository uses. It is nil for other repositories.
	Origin *Repo

	CheckoutGitDir string        // the git directory of Checkout
	Bare           bool          // all checkouts are linked worktrees
	Format         string        // hash algorithm of the objects
	Filters        []git.Setting // see filterSettings
	Sharing        Sharing       // see Share
	LFS            string        // the directory in which Git LFS stores contents

	filterCommands []git.Setting // the filters in the configuration
	configAtOpen   string        // see currentFilters
	Memo           *memo
	Locks          *lock.Dir
	Store          *git.Store
}

// Open finds the repository that contains dir, which may be the main checkout, a subdirectory, or a linked
// worktree. If dir is in a task's worktree, Open uses the enclosing checkout instead.
func Open(ctx context.Context, dir string) (*Repo, error) {
	r, err := OpenEmpty(ctx, dir)
	if err != nil {
		return nil, err
	}
	if err := r.checkCommits(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Checkout, err)
	}
	return r, nil
}

// OpenEmpty is like Open, but the repository need not have a commit.
func OpenEmpty(ctx context.Context, dir string) (*Repo, error) {
	start, err := enclosingCheckout(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	at, err := git.Discover(ctx, start)
	if err != nil {
		if gone := gone(start); gone != nil {
			return nil, gone
		}
		if git.ExitCode(err) > 0 && !insideAny(start) {
			return nil, fmt.Errorf("%s: %w", dir, ErrNotRepository)
		}
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if at.Bare {
		return nil, bareError(at)
	}
	if !at.Inside {
		return nil, fmt.Errorf("%s: is a git directory, not a checkout: %w", dir, ErrNotRepository)
	}
	return newRepo(ctx, at)
}

func newRepo(ctx context.Context, at git.Location) (*Repo, error) {
	r := &Repo{Checkout: at.Top, GitDir: at.Shared, CheckoutGitDir: at.Dir, Format: at.Format, Memo: &memo{}, Locks: lock.Open(filepath.Join(at.Shared, "coven", "locks")), Store: git.OpenStore(at.Shared)}
	var err error
	r.Root, err = mainCheckout(ctx, at)
	if errors.Is(err, ErrBare) {
		r.Bare = true
		r.Root, err = r.bareRoot()
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if r.Filters, err = r.filterSettings(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if r.LFS, err = r.lfsStorage(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if r.Sharing, err = r.sharing(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	r.Locks.Share = r.Share
	return r, nil
}

// checkCommits returns ErrNoCommits if no branch has a commit.
func (r *Repo) checkCommits(ctx context.Context) error {
	if _, err := r.Head(ctx); err == nil {
		return nil
	}
	branches, err := r.Git().Refs(ctx, "refs/heads/")
	if err == nil && len(branches) == 0 {
		err = ErrNoCommits
	}
	return err
}

// mainCheckout returns the top of the main checkout. If the shared git directory is not named .git,
// core.worktree contains the path of the checkout.
func mainCheckout(ctx context.Context, at git.Location) (string, error) {
	if at.Dir == at.Shared {
		return at.Top, nil
	}
	settings, err := git.Repo{Dir: at.Shared}.Configured(ctx, `^core\.(worktree|bare)$`, false)
	if err != nil {
		return "", err
	}
	root := filepath.Dir(at.Shared)
	for _, s := range settings {
		switch {
		case s.Key == "core.bare" && s.Value == "true":
			return "", ErrBare
		case s.Key == "core.worktree" && filepath.IsAbs(s.Value):
			root = s.Value
		case s.Key == "core.worktree":
			root = filepath.Join(at.Shared, s.Value)
		}
	}
	return root, nil
}

// enclosingCheckout resolves dir. If dir is in a task's worktree, it returns the enclosing checkout instead,
// because the agent controls the worktree's .git.
func enclosingCheckout(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	marker := string(filepath.Separator) + names.WorktreesDir + string(filepath.Separator)
	if outside, _, found := strings.Cut(abs+string(filepath.Separator), marker); found && insideAny(outside) {
		return outside, nil
	}
	return cmp.Or(placedIn(abs), abs), nil
}

// insideAny reports whether dir or a directory above it has a .git.
func insideAny(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// Git returns the git.Repo for operations on refs, objects and merges.
func (r *Repo) Git() git.Repo {
	return git.Repo{Dir: r.GitDir, WorkTree: r.Root, Store: r.Store}
}

// StatePath returns a path in coven's part of the git directory.
func (r *Repo) StatePath(elem ...string) string {
	return filepath.Join(append([]string{r.GitDir, "coven"}, elem...)...)
}

// RefLog returns the log of coven's ref changes.
func (r *Repo) RefLog() ref.Log { return ref.Log(r.StatePath("refs.log")) }

// Ignores reports whether git ignores a path in the main checkout and does not track it. path is relative
// to the root.
func (r *Repo) Ignores(ctx context.Context, path string) (bool, error) {
	seen, err := r.RootGit().Output(ctx, "ls-files", "--cached", "--others", "--exclude-standard", "--", path)
	if err != nil {
		return false, fmt.Errorf("ask git whether it ignores %s: %w", path, err)
	}
	return len(seen) == 0, nil
}

// Head returns the commit that is checked out in Checkout.
func (r *Repo) Head(ctx context.Context) (string, error) {
	return git.Repo{Dir: r.CheckoutGitDir, WorkTree: r.Checkout, Store: r.Store}.Head(ctx)
}

// Lock waits for the named lock until ctx is done. Other waiters see operation, such as "land T".
func (r *Repo) Lock(ctx context.Context, name, operation string) (*lock.Lock, error) {
	return r.Locks.Acquire(ctx, name, operation)
}
