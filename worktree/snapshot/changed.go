package snapshot

import (
	"context"
	"slices"

	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Differing returns the paths that differ between two snapshots. If a snapshot has Only, it returns only
// those paths.
func Differing(ctx context.Context, r *repo.Repo, one, two Snapshot) ([]string, error) {
	differ, err := diff.Paths(ctx, r, one.Tree, two.Tree)
	return slices.DeleteFunc(differ, func(p string) bool {
		return one.Only != nil && !slices.Contains(one.Only, p) || two.Only != nil && !slices.Contains(two.Only, p)
	}), err
}

// LastDiffering returns the number of the newest snapshot of a session whose files differ from those of
// now, or 0 if there is none.
func LastDiffering(ctx context.Context, r *repo.Repo, session string, now Snapshot) (int, error) {
	all, err := List(ctx, r, session)
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
