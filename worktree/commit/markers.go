package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/suspect"
)

// A MarkersError lists files to which a change adds conflict markers, and files that git in the worktree shows as unmerged.
type MarkersError struct{ Marked, Unmerged []string }

func (e *MarkersError) Error() string {
	var parts []string
	if len(e.Marked) > 0 {
		parts = append(parts, fmt.Sprintf("conflict markers in %s (if they belong there: %q in .gitattributes)",
			strings.Join(e.Marked, ", "), e.Marked[0]+" conflict-marker-size=32"))
	}
	if len(e.Unmerged) > 0 {
		parts = append(parts, "an unfinished merge in "+strings.Join(e.Unmerged, ", ")+" (git add them once they are resolved)")
	}
	return strings.Join(parts, "; ")
}

// usualMarker is the default number of signs of a conflict marker: see conflict-marker-size in gitattributes.
const usualMarker = 7

// checkMarkers returns a *MarkersError if the change adds conflict markers, or if a merge by the agent has unmerged paths.
// marked has the changed blobs with markers.
func (c *committing) checkMarkers(ctx context.Context, changes []object.Change, marked map[string]bool) error {
	var candidates []object.Change
	for _, change := range changes {
		if marked[change.Oid] && change.Status != 'D' && strings.HasPrefix(change.Mode, "100") {
			candidates = append(candidates, change)
		}
	}
	found := &MarkersError{Unmerged: c.unmerged(ctx)}
	if len(candidates) > 0 {
		var err error
		if found.Marked, err = c.marked(ctx, candidates, changes); err != nil {
			return fmt.Errorf("look for conflict markers: %w", err)
		}
	}
	if len(found.Marked)+len(found.Unmerged) > 0 {
		return found
	}
	return nil
}

// marked returns the candidates to which the change adds markers. A file that was renamed is compared with its old
// version: with all those that the change removes.
func (c *committing) marked(ctx context.Context, candidates, changes []object.Change) ([]string, error) {
	sizes, err := c.markerSizes(ctx, candidates)
	if err != nil {
		return nil, err
	}
	before := map[string]string{} // path -> old object ID
	oids, gone := map[string]bool{}, []string{}
	for _, change := range changes {
		if !strings.HasPrefix(change.OldMode, "100") {
			continue
		}
		before[change.Path] = change.OldOid
		if change.Status == 'D' {
			gone = append(gone, change.OldOid)
			oids[change.OldOid] = true
		}
	}
	ours, err := c.ours(ctx, candidates)
	if err != nil {
		return nil, err
	}
	for _, change := range candidates {
		for _, oid := range []string{change.Oid, before[change.Path], ours[change.Path]} {
			if oid != "" {
				oids[oid] = true
			}
		}
	}
	texts := map[string][]byte{}
	err = c.w.Repo.Git().Objects(ctx, slices.Collect(maps.Keys(oids)), func(o object.Object, body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, suspect.MaxSize))
		texts[o.Oid] = text
		return err
	})
	if err != nil {
		return nil, err
	}
	var found []string
	for _, change := range candidates {
		size := sizes[change.Path]
		had := max(countMarkers(texts[before[change.Path]], size), countMarkers(texts[ours[change.Path]], size))
		if before[change.Path] == "" {
			for _, oid := range gone {
				had = max(had, countMarkers(texts[oid], size))
			}
		}
		if countMarkers(texts[change.Oid], size) > had {
			found = append(found, change.Path)
		}
	}
	return found, nil
}

// ours returns the blobs of changed files on the branch, if the commit merges the target: both sides may have markers of
// their own.
func (c *committing) ours(ctx context.Context, changes []object.Change) (map[string]string, error) {
	if c.merge == "" {
		return nil, nil //nolint:nilnil // an empty map
	}
	var paths []string
	for _, change := range changes {
		paths = append(paths, change.Path)
	}
	entries, err := c.w.Repo.Git().Entries(ctx, c.tip.Oid, paths...)
	ours := map[string]string{}
	for _, e := range entries {
		ours[e.Path] = e.Oid
	}
	return ours, err
}

// markerSizes returns the number of signs of a conflict marker in each file, from the attributes in the worktree.
func (c *committing) markerSizes(ctx context.Context, changes []object.Change) (map[string]int, error) {
	var paths []string
	for _, change := range changes {
		paths = append(paths, change.Path)
	}
	values, err := content.Attributes(ctx, c.ix.Git, "conflict-marker-size", paths)
	if err != nil {
		return nil, err
	}
	sizes := map[string]int{}
	for _, p := range paths {
		sizes[p] = usualMarker
		if size, err := strconv.Atoi(values[p]); err == nil && size > 0 {
			sizes[p] = size
		}
	}
	return sizes, nil
}

// countMarkers returns the number of conflicts that a text shows: lines that begin with signs like <<<<<<< followed by a
// line of the other kinds.
func countMarkers(text []byte, size int) (n int) {
	if !bytes.Contains(text, bytes.Repeat([]byte("<"), size)) {
		return 0
	}
	open := false
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case isMarker(line, '<', size):
			open = true
		case open && (isMarker(line, '>', size) || isMarker(line, '=', size)):
			n++
			open = false
		}
	}
	return n
}

// isMarker reports whether a line begins with size signs, followed by a label. There is none after =.
func isMarker(line []byte, sign byte, size int) bool {
	rest := bytes.TrimLeft(line, string(sign))
	if len(line)-len(rest) != size {
		return false
	}
	return sign == '=' && len(rest) == 0 || sign != '=' && len(rest) > 1 && rest[0] == ' '
}

// unmerged returns the paths that git in the worktree shows as unmerged, unless coven wrote the conflict there, which
// integrate.Unresolved examines. An agent may have removed or damaged the index.
func (c *committing) unmerged(ctx context.Context) (paths []string) {
	if _, err := os.Lstat(integrate.ConflictedPath(c.w)); c.merge != "" || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	g := c.ix.Git
	g.Index = filepath.Join(c.w.Admin, "index")
	if info, err := os.Lstat(g.Index); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	fields, err := g.Fields(ctx, "ls-files", "-z", "-u")
	if err != nil {
		return nil
	}
	for _, field := range fields {
		if _, p, ok := strings.Cut(field, "\t"); ok {
			paths = append(paths, p)
		}
	}
	return slices.Compact(paths)
}
