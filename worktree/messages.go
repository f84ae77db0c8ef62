package worktree

import (
	"context"
	"fmt"
	"strings"
)

// Unredacted returns the commits of the task's branch above a commit that have something
// in their messages which Redact takes out: commits that coven did not make.
func (w *Worktree) Unredacted(ctx context.Context, above string) ([]string, error) {
	if w.repo.Redact == nil {
		return nil, nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	g := w.repo.git()
	out, err := g.Output(ctx, "rev-list", "--reverse", tip, "^"+above)
	if err != nil {
		return nil, fmt.Errorf("list the commits of %s: %w", w.TaskID, err)
	}
	commits, err := g.Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return nil, fmt.Errorf("read the commits of %s: %w", w.TaskID, err)
	}
	var found []string
	for _, c := range commits {
		if w.repo.Redact(c.Message) != c.Message {
			found = append(found, c.Oid)
		}
	}
	return found, nil
}
