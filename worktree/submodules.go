package worktree

import (
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// coven never moves the checkout of a submodule, whose git directory belongs to the agent. When it
// moves W to another tree, it records the commits that the submodules in W have and the commits
// that they should have. As long as the HEAD of a submodule stays where it was, the submodule
// counts as what it should have, so that what coven did is no change of the task.

// leaveAsIn makes submodules count as in a snapshot: all, or those at or below some paths.
func leaveAsIn(ctx context.Context, w *repo.Worktree, snapshot git.Commit, paths []string) error {
	s, err := parseSnapshot(snapshot)
	if err != nil {
		return err
	}
	if has, err := w.Repo.HasCommit(ctx, s.Tip); err != nil || !has {
		return err
	}
	candidates, err := submodule.Links(ctx, w)
	if err != nil {
		return err
	}
	goals, own := map[string]string{}, submodule.ParseLinks(s.links)
	for _, p := range candidates {
		if len(paths) > 0 && !slices.ContainsFunc(paths, func(asked string) bool { return asked == p || strings.HasPrefix(p, asked+"/") }) {
			continue
		}
		goals[p] = own[p]
		if goals[p] != "" {
			continue
		}
		if goals[p], err = submodule.LinkIn(ctx, w, s.Tip, p); err != nil {
			return err
		}
	}
	return submodule.SetLeft(w, goals)
}
