package worktree

import (
	"context"
	"slices"

	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/worktree/internal/git"
)

// filterSettings makes the repository's clean and smudge filters run in the main
// checkout. git would start them in the worktree, where the agent can replace relative
// programs and modules of `python -m`.
func (r *Repo) filterSettings(ctx context.Context) ([]git.Setting, error) {
	found, err := r.git().Configured(ctx, `^filter\..*\.(clean|smudge|process)$`, false)
	if err != nil {
		return nil, err
	}
	r.filterCommands = slices.DeleteFunc(found, func(s git.Setting) bool { return s.Value == "" })
	return within(r.filterCommands, "cd "+shellword.Quote(r.Root)+" && "), nil
}

// filtersFor makes the filters run in a checkout although git writes its new files
// elsewhere.
func (r *Repo) filtersFor(top string) []git.Setting {
	return within(r.filterCommands,
		"unset GIT_INDEX_FILE; export GIT_WORK_TREE="+shellword.Quote(top)+"; cd "+shellword.Quote(top)+" && ")
}

func within(commands []git.Setting, before string) []git.Setting {
	var settings []git.Setting
	for _, s := range commands {
		settings = append(settings, git.Setting{Key: s.Key, Value: before + s.Value})
	}
	return settings
}
