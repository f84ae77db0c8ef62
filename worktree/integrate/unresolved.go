package integrate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// An UnresolvedError lists files with unresolved conflicts: files that still contain conflict markers, and
// files that MergeConflicted added (Conflicted.Beside) and that still exist. Conflicts that leave no trace,
// such as a deletion or a rename on both sides, count as resolved.
type UnresolvedError struct{ Files []string }

func (e *UnresolvedError) Error() string {
	return "unresolved conflicts in " + strings.Join(e.Files, ", ")
}

// Unresolved checks a tree before it is committed, and returns an *UnresolvedError if conflicts remain.
// merge is the merged commit, or "".
func Unresolved(ctx context.Context, w *repo.Worktree, tree, tip, merge string) error {
	c, err := inConflict(ctx, w, tip, merge)
	if err != nil || len(c.Files) == 0 {
		return err
	}
	entries, err := content.EntriesByPath(ctx, w, tree)
	if err != nil {
		return err
	}
	var open []string
	for name := range c.Beside {
		if _, there := entries[name]; there {
			open = append(open, name)
		}
	}
	for _, p := range c.Files {
		e, there := entries[p]
		if !there || !strings.HasPrefix(e.Mode, "100") || slices.Contains(open, p) {
			continue
		}
		marked, err := marked(ctx, w, e, c)
		if err != nil {
			return err
		}
		if marked {
			open = append(open, p)
		}
	}
	if len(open) > 0 {
		slices.Sort(open)
		return &UnresolvedError{Files: open}
	}
	return nil
}

// inConflict returns the conflict that MergeConflicted recorded. If merge is another commit, it returns the
// conflict that git finds.
func inConflict(ctx context.Context, w *repo.Worktree, tip, merge string) (Conflicted, error) {
	var c Conflicted
	err := file.ReadJSON(ConflictedPath(w), &c)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("read the conflicts: %w", err)
	}
	if merge == "" || err == nil && c.TargetTip == merge {
		return c, nil
	}
	_, err = MergeCommits(ctx, w, tip, merge)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		return Conflicted{Files: conflict.Files, BranchTip: tip, TargetTip: merge}, nil
	}
	return Conflicted{}, err
}

// marked reports whether a file has conflict markers. A version of one side that was taken without changes
// is not examined.
func marked(ctx context.Context, w *repo.Worktree, e object.Entry, c Conflicted) (bool, error) {
	found, err := fileHasMarkers(ctx, w, e.Oid)
	if err != nil || !found {
		return false, err
	}
	for _, tip := range []string{c.BranchTip, c.TargetTip} {
		before, err := w.Repo.Git().Entries(ctx, tip, e.Path)
		if err != nil {
			return false, err
		}
		if len(before) != 1 || before[0].Path != e.Path || !strings.HasPrefix(before[0].Mode, "100") {
			continue
		}
		if before[0].Oid == e.Oid {
			return false, nil
		}
	}
	return true, nil
}

func fileHasMarkers(ctx context.Context, w *repo.Worktree, oid string) (bool, error) {
	found := false
	err := w.Repo.Git().Objects(ctx, []string{oid}, func(_ object.Object, body io.Reader) (err error) {
		found, err = findMarkers(body)
		return err
	})
	return found, err
}

// HasMarkers reports whether content contains the markers of a complete conflict, in order.
func HasMarkers(content []byte) bool {
	found, _ := findMarkers(bytes.NewReader(content)) // reading from memory does not fail
	return found
}

// findMarkers is HasMarkers for a file that may be larger than memory.
func findMarkers(content io.Reader) (bool, error) {
	in := bufio.NewReader(content)
	for want, begins := 0, true; ; {
		line, continues, err := in.ReadLine()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case !begins:
		case want == 0 && isMarker(line, '<', true), want == 1 && isMarker(line, '=', false):
			want++
		case want == 2 && isMarker(line, '>', true):
			return true, nil
		}
		begins = !continues
	}
}

// isMarker reports whether a line begins with seven or more signs (see gitattributes,
// conflict-marker-size). If labelled is set, a space must follow.
func isMarker(line []byte, sign byte, labelled bool) bool {
	rest := bytes.TrimLeft(line, string(sign))
	return len(line)-len(rest) >= 7 && (!labelled || bytes.HasPrefix(rest, []byte(" ")))
}

// ForgetConflict removes the record of the conflicts.
func ForgetConflict(w *repo.Worktree) error {
	err := os.Remove(ConflictedPath(w))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
