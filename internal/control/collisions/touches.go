package collisions

import (
	"context"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/text/glob"
	"github.com/coven-run/coven/worktree/claim"
)

// touchesPrefix is the beginning of a label that declares which files a task changes: touches:src/parser/**.
const touchesPrefix = "touches:"

// Touches returns the globs of files that a task declares to change. Invalid ones do not count.
func Touches(t task.Task) (globs []string) {
	for _, label := range t.Labels {
		if g, ok := strings.CutPrefix(label, touchesPrefix); ok && glob.Check(g) == nil {
			globs = append(globs, g)
		}
	}
	return globs
}

// overlap reports whether a glob of one list is in the other list, or matches a glob of it as a path.
func overlap(one, two []string) bool {
	return slices.ContainsFunc(one, func(a string) bool {
		return slices.ContainsFunc(two, func(b string) bool {
			return a == b || doublestar.MatchUnvalidated(a, b) || doublestar.MatchUnvalidated(b, a)
		})
	})
}

// Holder returns the open task that holds back another one, because both declare to change the same files. It returns "" if there
// is none, or if the settings do not serialize tasks. open are tasks that are not claimed yet.
func Holder(ctx context.Context, p *project.Project, t task.Task, open ...task.Task) (string, error) {
	own := Touches(t)
	if p.Config.Run.Collisions != Serialize || len(own) == 0 {
		return "", nil
	}
	for _, other := range open {
		if other.ID != t.ID && overlap(own, Touches(other)) {
			return other.ID, nil
		}
	}
	claims, err := claim.List(ctx, p.Repo)
	if err != nil {
		return "", err
	}
	tracker, err := p.Tasks()
	if err != nil {
		return "", err
	}
	for _, held := range claims {
		if held.Task == t.ID {
			continue
		}
		other, err := tracker.Get(ctx, held.Task)
		if err == nil && overlap(own, Touches(other)) { // a prompt is in no tracker
			return held.Task, nil
		}
	}
	return "", nil
}
