package content

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/git"
)

// Attributes returns the value of an attribute for each path, as git check-attr prints it: unspecified, unset, set, or
// the value. The .gitattributes are those of the work tree of g.
func Attributes(ctx context.Context, g git.Repo, attribute string, paths []string) (map[string]string, error) {
	out, err := g.Feed(ctx, git.Join(paths), "check-attr", "-z", "--stdin", attribute)
	if err != nil {
		return nil, fmt.Errorf("read the attribute %s: %w", attribute, err)
	}
	values := map[string]string{}
	for fields := git.Split(out); len(fields) > 2; fields = fields[3:] { // path, attribute, value
		values[fields[0]] = fields[2]
	}
	return values, nil
}

// without returns the items that are not in drop.
func without(items, drop []string) []string {
	if len(drop) == 0 {
		return items
	}
	gone := make(map[string]bool, len(drop))
	for _, item := range drop {
		gone[item] = true
	}
	var left []string
	for _, item := range items {
		if !gone[item] {
			left = append(left, item)
		}
	}
	return left
}
