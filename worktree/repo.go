// Package worktree manages a git worktree for each task: add, snapshot, revert, commit,
// diff, integrate, land, rescue, remove. Recreate restores a worktree that a user
// deleted; Stale and Clear find and remove what a killed process left behind. In this
// package, W denotes the directory of a task's worktree.
//
// Rules:
//   - Nothing is lost: before content is overwritten or removed, it is stored under
//     refs/coven/. If storing fails, nothing is removed.
//   - A user's checkout is never switched, stashed or overwritten.
//   - If W does not exist, operations fail with ErrNoWorktree; they never treat it as a
//     W whose files were deleted. Each operation checks before and after it reads W.
//   - The agent owns its worktree W, also W/.git and the worktree's git directory. git
//     never runs with those: always with the repository's git directory, W as work tree
//     and an index of our own. Their content never decides where coven writes.
//   - An index is a cache. Each operation works on a private copy and replaces the
//     index at the end, so a killed operation leaves no lock and no partial state. An
//     operation records what it is about to move.
//   - Locks (GitDir/coven/locks) are taken in this order: gc, task, examine, worktrees,
//     target, checkout; landing takes only the locks of its target and of the target's
//     checkouts. git child processes inherit the lock of their operation, so it lasts
//     as long as they do. The file of a lock names its holder; only the lock itself
//     shows whether it is held.
//   - A lock file of git belongs to the process that made it. Operations wait for it
//     and then report it (*BusyError, *CheckoutError), but never remove it, except those that
//     killed programs of a task left in W's own git directory. While coven
//     changes a checkout, it holds the index lock of that checkout itself: see package
//     checkout.
//   - Worktrees, registrations and checkouts that coven did not make are never changed,
//     except that a checkout of the target follows a landing.
//
// On disk, in the repository's git directory: coven/tasks/<name>/ (task.json, the
// indexes, op-* with the index of each running operation, integrate.json while an
// integration runs, conflicted.json while W holds a conflicted merge, watch.json while a
// step is watched, submodules.json: see leftLinks, outside.json: see outsideRecord),
// coven/tasks/.scratch, coven/locks, coven/lines (who waits to land: see ticket), coven/raw (settings for snapshots), coven/moves
// (moves of checkouts in progress: see package checkout), coven/refs.log (coven's own changes
// of refs), coven/plain (git without the repository's configuration); refs/heads/coven/<name>,
// refs/coven/{claims,snapshots,rescue}. In the checkout: .coven/worktrees/<name>, and
// .coven/worktrees/.pool with the files of landed worktrees, which coven/pool describes, and
// .coven/worktrees/.unexamined, which coven/unexamined and refs/coven/unexamined describe (see Examine).
package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
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
	Root     string // top of the main checkout; of a bare repository see bareRoot
	Checkout string // top of the checkout that Open was called in
	GitDir   string // the git directory that all checkouts share

	// Redact removes secrets from the message of each commit that coven creates; it may be
	// nil.
	Redact func(message string) string
	// Hidden reports whether programs of tasks cannot read a file, so that no worktree gets a
	// copy of it; it may be nil.
	Hidden func(path string) bool

	// Pool limits what is kept of landed worktrees for later ones.
	Pool Pool
	// Sparse selects the files of new worktrees.
	Sparse Sparse
	// Submodules means that new worktrees have the files of submodules: see populate.
	Submodules bool

	// Examined is told what the examination of a landed worktree has found that another process had released: see
	// RemoveRequest.Later. It may be nil.
	Examined func(Examined)

	examineLater int64 // see the constant

	checkoutDir string        // the git directory of Checkout
	bare        bool          // all checkouts are linked ones
	format      string        // hash algorithm of the objects
	filters     []git.Setting // see filterSettings

	filterCommands []git.Setting // as they are configured
	configAtOpen   string        // see currentFilters
	memo           *memo
	locks          *lock.Dir
	store          *git.Store
}

// Open finds the repository that dir is in: in the main checkout, any subdirectory, or
// a linked worktree. If dir is in a task's worktree, the main checkout is used
// instead.
func Open(ctx context.Context, dir string) (*Repo, error) {
	start, err := personsDir(dir)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	at, err := git.Discover(ctx, start)
	if err != nil {
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
	r := &Repo{Checkout: at.Top, GitDir: at.Shared, checkoutDir: at.Dir, format: at.Format, examineLater: examineLater, memo: &memo{}, locks: lock.Open(filepath.Join(at.Shared, "coven", "locks")), store: git.OpenStore(at.Shared)}
	var err error
	r.Root, err = mainCheckout(ctx, at)
	if errors.Is(err, ErrBare) {
		r.bare = true
		r.Root, err = r.bareRoot()
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if r.filters, err = r.filterSettings(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if _, err = r.head(ctx); err == nil {
		return r, nil
	}
	branches, err := r.git().Refs(ctx, "refs/heads/")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", at.Top, err)
	}
	if len(branches) == 0 {
		return nil, fmt.Errorf("%s: %w", at.Top, ErrNoCommits)
	}
	return r, nil
}

// mainCheckout returns the top of the main checkout. If the shared git directory is
// not named .git, core.worktree has the path of the checkout.
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

// personsDir resolves dir. If it is in a task's worktree, it returns the enclosing
// checkout instead, because the agent controls W/.git.
func personsDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	marker := string(filepath.Separator) + worktreesDir + string(filepath.Separator)
	if outside, _, found := strings.Cut(abs+string(filepath.Separator), marker); found && insideAny(outside) {
		return outside, nil
	}
	return abs, nil
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

// git returns the repository for operations on refs, objects and merges.
func (r *Repo) git() git.Repo {
	return git.Repo{Dir: r.GitDir, WorkTree: r.Root, Store: r.store}
}

// ours returns a path in coven's part of the git directory.
func (r *Repo) ours(elem ...string) string {
	return filepath.Join(append([]string{r.GitDir, "coven"}, elem...)...)
}

func (r *Repo) head(ctx context.Context) (string, error) {
	return git.Repo{Dir: r.checkoutDir, WorkTree: r.Checkout, Store: r.store}.Head(ctx)
}
