package worktree

import (
	"context"
	"fmt"
)

// Changed names the paths that differ between two commits or trees.
func (r *Repo) Changed(ctx context.Context, from, to string) ([]string, error) {
	changes, err := r.git().Changes(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %.10s with %.10s: %w", from, to, err)
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	return paths, nil
}
