package commit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/suspect"
)

// maxFile is the size in bytes above which a file is suspect.
const maxFile = 10 << 20

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
	reasons := map[string]string{}
	paths := map[string][]string{} // by object ID
	for _, change := range changes {
		if change.Status == 'D' || change.Mode == object.ModeSubmodule || content.IsReserved(change.Path) {
			continue
		}
		if reason := suspect.Name(change.Path); reason != "" {
			reasons[change.Path] = reason
		}
		paths[change.Oid] = append(paths[change.Oid], change.Path)
	}
	marked = map[string]bool{}
	err = eachReason(ctx, g, paths, func(oid, reason string) {
		for _, p := range paths[oid] {
			reasons[p] = reason
		}
	}, func(oid string) { marked[oid] = true })
	for p, reason := range reasons {
		found = append(found, Suspect{Path: p, Reason: reason})
	}
	slices.SortFunc(found, func(a, b Suspect) int { return strings.Compare(a.Path, b.Path) })
	return found, marked, err
}

// eachReason calls report for each blob with suspect content, and mark for those with conflict markers.
func eachReason(ctx context.Context, g git.Repo, blobs map[string][]string, report func(oid, reason string), mark func(oid string)) error {
	var oids, small []string
	for oid := range blobs {
		oids = append(oids, oid)
	}
	sizes, err := g.Sizes(ctx, oids)
	if err != nil {
		return err
	}
	for oid, size := range sizes {
		if size > maxFile {
			report(oid, fmt.Sprintf("%d MB, more than %d MB", size>>20, maxFile>>20))
		} else {
			small = append(small, oid)
		}
	}
	return g.Objects(ctx, small, func(o object.Object, body io.Reader) error {
		content, err := io.ReadAll(body)
		if reason := suspect.Content(content); reason != "" {
			report(o.Oid, reason)
		}
		if countMarkers(content, usualMarker) > 0 {
			mark(o.Oid)
		}
		return err
	})
}
