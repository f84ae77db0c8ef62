package remote

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Publisher is a remote to which a plain git push would push coven's refs, which lead to unfinished work of tasks.
type Publisher struct {
	Name   string
	Mirror bool   // remote.NAME.mirror; git then accepts no list of refs
	Push   string // the setting remote.NAME.push, such as +refs/*:refs/*; empty with Mirror
}

// Publishers returns the remotes whose settings make git push coven's refs.
func Publishers(ctx context.Context, r *repo.Repo) ([]Publisher, error) {
	settings, err := r.Git().Configured(ctx, `^remote\..*\.(mirror|push)$`, false)
	if err != nil {
		return nil, fmt.Errorf("read the remotes: %w", err)
	}
	var found []Publisher
	excepted := map[string]bool{}
	for _, s := range settings {
		name, key := cutLast(strings.TrimPrefix(s.Key, "remote."), ".")
		source, _, _ := strings.Cut(strings.TrimPrefix(s.Value, "+"), ":")
		switch {
		case key == "mirror" && (s.Value == "true" || s.Value == ""):
			found = append(found, Publisher{Name: name, Mirror: true})
		case key == "push" && s.Value == ExceptCoven:
			excepted[name] = true
		case key == "push" && (source == "refs/*" || strings.HasPrefix(source, names.CovenPrefix)):
			found = append(found, Publisher{Name: name, Push: s.Value})
		}
	}
	var all []Publisher
	for _, p := range found {
		if p.Mirror || !excepted[p.Name] {
			all = append(all, p)
		}
	}
	return all, nil
}

// ExceptCoven is the value of remote.NAME.push that excepts coven's refs.
const ExceptCoven = "^" + names.CovenPrefix + "*"
