package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A RefAccount is the number and disk size of coven's refs of one kind.
type RefAccount struct {
	Kind  string // claims, snapshots, rescue, in, keep, branches
	Count int    // refs
	// Bytes is the current size on disk of the objects that only refs of this kind reach.
	Bytes int64
}

const branchesKind = "branches"

// Account returns an account of each kind of coven's refs: the six known kinds in the order of
// RefAccount.Kind, then any other kinds below refs/coven/.
func Account(ctx context.Context, r *repo.Repo) ([]RefAccount, error) {
	refs, err := r.Git().Refs(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure coven's refs: %w", err)
	}
	owners, err := r.BranchOwners()
	if err != nil {
		return nil, fmt.Errorf("measure coven's refs: %w", err)
	}
	kindOf := func(ref string) string { return kindOf(ref, owners) }
	kinds := []string{"claims", "snapshots", "rescue", "in", "keep", branchesKind}
	counts := map[string]int{}
	for _, ref := range refs {
		kind := kindOf(ref.Name)
		if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		counts[kind]++
	}
	var all []RefAccount
	for _, kind := range kinds {
		account := RefAccount{Kind: kind, Count: counts[kind]}
		if account.Count > 0 {
			if account.Bytes, err = onlyFrom(ctx, r, refs, func(ref string) bool { return kindOf(ref) == kind }); err != nil {
				return nil, fmt.Errorf("measure coven's %s: %w", kind, err)
			}
		}
		all = append(all, account)
	}
	return all, nil
}

// kindOf returns the kind of a ref, or "" if the ref does not belong to coven.
func kindOf(ref string, owners repo.BranchOwners) string {
	if rest, ours := strings.CutPrefix(ref, "refs/coven/"); ours {
		kind, _, _ := strings.Cut(rest, "/")
		return kind
	}
	if _, owned := owners.Task(ref); owned {
		return branchesKind
	}
	return ""
}

// onlyFrom returns the disk size of the objects that only the selected refs reach. A detached HEAD of
// the checkout counts as another ref.
func onlyFrom(ctx context.Context, r *repo.Repo, refs []ref.Ref, selects func(ref string) bool) (int64, error) {
	var lines []string
	for _, ref := range refs {
		if selects(ref.Name) {
			lines = append(lines, ref.Oid)
		} else {
			lines = append(lines, "^"+ref.Oid)
		}
	}
	if head, err := r.Head(ctx); err == nil {
		lines = append(lines, "^"+head)
	}
	// Edges are aggressive because the trees of all excluded tips must be examined, not only those of
	// boundary commits.
	stdin := []byte(strings.Join(lines, "\n") + "\n")
	out, err := r.Git().Feed(ctx, stdin, "rev-list", "--disk-usage", "--objects-edge-aggressive", "--stdin")
	if err != nil {
		return 0, err
	}
	words := strings.Fields(string(out)) // "-oid" for each boundary commit, then the sum
	if len(words) == 0 {
		return 0, errors.New("git rev-list printed no sum")
	}
	return strconv.ParseInt(words[len(words)-1], 10, 64)
}
