package worktree

import (
	"context"
	"fmt"
	"slices"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Changed names the paths that differ between two commits or trees.
func Changed(ctx context.Context, r *repo.Repo, from, to string) ([]string, error) {
	changes, err := r.Git().Changes(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %.10s with %.10s: %w", from, to, err)
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return paths, nil
}

// Differing returns the paths that differ between two snapshots: of all files, or of those that one
// of them has Only.
func Differing(ctx context.Context, r *repo.Repo, one, two snapshot.Snapshot) ([]string, error) {
	differ, err := Changed(ctx, r, one.Tree, two.Tree)
	return slices.DeleteFunc(differ, func(p string) bool {
		return one.Only != nil && !slices.Contains(one.Only, p) || two.Only != nil && !slices.Contains(two.Only, p)
	}), err
}

// LastDiffering returns the number of the newest snapshot of a session with other files than one of
// now; 0: there is none.
func LastDiffering(ctx context.Context, r *repo.Repo, session string, now snapshot.Snapshot) (int, error) {
	all, err := snapshot.List(ctx, r, session)
	if err != nil {
		return 0, err
	}
	for _, s := range slices.Backward(all) {
		if differ, err := Differing(ctx, r, s, now); err != nil || len(differ) > 0 {
			return s.N, err
		}
	}
	return 0, nil
}
