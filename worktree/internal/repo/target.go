package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Errors of Target.
var (
	// ErrDetached means that no branch is checked out to land on.
	ErrDetached = exit.Sentinel(exit.Usage, "git switch BRANCH", "no branch is checked out (detached HEAD): use --onto BRANCH")
	// ErrUnknownBranch means that the named branch does not exist.
	ErrUnknownBranch = exit.Sentinel(exit.Usage, "git branch", "no such branch")
	// ErrTaskBranch means that the target is the branch of a task.
	ErrTaskBranch = exit.Sentinel(exit.Usage, "git switch BRANCH", "branch belongs to a task: use --onto with another branch")
)

// A Target is the branch that a task lands on, and its tip at the time of reading.
type Target struct {
	Branch string `json:"branch"` // main, or origin/main
	Ref    string `json:"ref"`    // refs/heads/main, or refs/remotes/origin/main
	Tip    string `json:"tip"`    // oid of its commit
}

// IsRemote reports whether the target is a branch of a remote.
func (t Target) IsRemote() bool { return strings.HasPrefix(t.Ref, names.RemotesPrefix) }

// Target reads the branch onto: the name of a branch, or a full ref, which may be a remote-tracking branch. If onto is empty, it reads
// the branch that is checked out in Checkout.
func (r *Repo) Target(ctx context.Context, onto string) (Target, error) {
	name := names.HeadsPrefix + strings.TrimPrefix(onto, names.HeadsPrefix)
	switch {
	case strings.HasPrefix(onto, names.RemotesPrefix):
		name = onto
	case onto == "":
		var err error
		if name, err = r.HeadOf(ctx, r.CheckoutGitDir); err != nil {
			return Target{}, err
		}
	}
	target := Target{Branch: strings.TrimPrefix(strings.TrimPrefix(name, names.HeadsPrefix), names.RemotesPrefix), Ref: name}
	owners, err := r.BranchOwners()
	if err != nil {
		return target, fmt.Errorf("read target %s: %w", target.Branch, err)
	}
	if _, owned := owners.Task(name); owned {
		return target, fmt.Errorf("target %s: %w", target.Branch, ErrTaskBranch)
	}
	tip, err := r.Git().Ref(ctx, name)
	if errors.Is(err, ref.ErrNoRef) && onto == "" {
		return target, fmt.Errorf("target %s: %w", target.Branch, ErrNoCommits)
	}
	if errors.Is(err, ref.ErrNoRef) {
		return target, fmt.Errorf("target %q: %w", target.Branch, ErrUnknownBranch)
	}
	if err != nil {
		return target, fmt.Errorf("read target %s: %w", target.Branch, err)
	}
	target.Tip = tip
	return target, nil
}

// HeadOf returns the ref that is checked out in the checkout with this git directory, or ErrDetached.
func (r *Repo) HeadOf(ctx context.Context, gitDir string) (string, error) {
	ref, err := git.Repo{Dir: gitDir, Store: r.Store}.Branch(ctx)
	if git.ExitCode(err) == 1 {
		return "", ErrDetached
	}
	return ref, err
}

// Branches lists the local branches except those of tasks, sorted by name.
func (r *Repo) Branches(ctx context.Context) ([]string, error) {
	refs, err := r.Git().Refs(ctx, names.HeadsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	owners, err := r.BranchOwners()
	if err != nil {
		return nil, fmt.Errorf("list the branches: %w", err)
	}
	var branches []string
	for _, ref := range refs {
		if _, owned := owners.Task(ref.Name); !owned {
			branches = append(branches, strings.TrimPrefix(ref.Name, names.HeadsPrefix))
		}
	}
	return branches, nil
}
