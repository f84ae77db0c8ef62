package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/suspect"
)

// A Suspect is a file that should not be committed without the user's approval.
type Suspect struct {
	Path   string
	Reason string
}

// A SuspectError lists files that look like secrets or are very large.
type SuspectError struct{ Files []Suspect }

func (e *SuspectError) Error() string {
	var lines []string
	for _, f := range e.Files {
		lines = append(lines, fmt.Sprintf("%q: %s", f.Path, f.Reason))
	}
	return "files that do not belong in a commit: " + strings.Join(lines, "; ")
}

// inspect checks everything that the branch adds to the target: the tree to be committed and each commit by
// the agent.
func (c *committing) inspect(ctx context.Context, tree string) error {
	g := c.w.Repo.Git()
	fork, err := c.fork(ctx)
	if err != nil {
		return err
	}
	changes, err := g.Changes(ctx, fork, tree)
	if err != nil {
		return err
	}
	committed, err := c.committed(ctx)
	if err != nil {
		return fmt.Errorf("look for secrets: %w", err)
	}
	suspects, marked, err := findSuspects(ctx, g, slices.Concat(changes, committed))
	if err != nil {
		return fmt.Errorf("look for secrets: %w", err)
	}
	suspects = slices.DeleteFunc(suspects, func(s Suspect) bool {
		return slices.Contains(c.req.Allow, s.Path)
	})
	if len(suspects) > 0 {
		return &SuspectError{Files: suspects}
	}
	return c.checkMarkers(ctx, changes, marked)
}

// committed returns the changes of the commits that are on the branch only.
func (c *committing) committed(ctx context.Context) ([]object.Change, error) {
	g := c.w.Repo.Git()
	if landed, err := g.IsAncestor(ctx, c.tip.Oid, c.req.TargetTip); err != nil || landed {
		return nil, err
	}
	commits, err := g.Output(ctx, "rev-list", c.tip.Oid, "^"+c.req.TargetTip)
	if err != nil {
		return nil, err
	}
	out, err := g.Feed(ctx, commits, git.DiffArgs("diff-tree", "--stdin", "--no-commit-id", "-r", "-z", "--raw",
		"--no-renames", "--no-abbrev", "-c", "--root")...)
	if err != nil {
		return nil, err
	}
	return git.ParseRaw(out)
}

// findSuspects returns the suspects among changed files, sorted by path, and the blobs that may have conflict markers.
func findSuspects(ctx context.Context, g git.Repo, changes []object.Change) (found []Suspect, marked map[string]bool, err error) {
	marked = map[string]bool{}
	large := map[string]string{}
	reasons, err := suspect.Find(ctx, g, changes, func(b suspect.Blob) {
		if b.Size > suspect.MaxSize {
			for _, p := range b.Paths {
				large[p] = fmt.Sprintf("%d MB, more than %d MB", b.Size>>20, suspect.MaxSize>>20)
			}
		}
		if countMarkers(b.Text, usualMarker) > 0 {
			marked[b.Oid] = true
		}
	})
	maps.Copy(reasons, large)
	for p, reason := range reasons {
		found = append(found, Suspect{Path: p, Reason: reason})
	}
	slices.SortFunc(found, func(a, b Suspect) int { return strings.Compare(a.Path, b.Path) })
	return found, marked, err
}
