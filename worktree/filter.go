package worktree

import (
	"context"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// filterSettings makes the repository's clean and smudge filters run in the
// main checkout. git would start them in the worktree, where a relative
// program, or a `python -m`, is the agent's to replace.
func (r *Repo) filterSettings(ctx context.Context) ([]git.Setting, error) {
	found, err := r.git().Configured(ctx, `^filter\..*\.(clean|smudge|process)$`, false)
	if err != nil {
		return nil, err
	}
	var settings []git.Setting
	for _, s := range found {
		if s.Value == "" {
			continue
		}
		settings = append(settings, git.Setting{Key: s.Key, Value: "cd " + quote(r.Root) + " && " + s.Value})
	}
	return settings, nil
}

// quote makes one shell word.
func quote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
