package land

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/object"
)

// commit creates the commit that becomes the target's tip.
func (l *landing) commit(ctx context.Context) (string, error) {
	c := l.req.Landing
	switch l.req.Strategy {
	case Squash, "", Merge:
		message, err := l.message(ctx)
		if err != nil {
			return "", err
		}
		parents := []string{l.onto}
		if l.req.Strategy == Merge {
			parents = append(parents, c.Tip)
		}
		return l.store(ctx, c.Tree, message, nil, parents...)
	case Rebase:
		return l.replay(ctx)
	default:
		return "", fmt.Errorf("unknown strategy %q: use squash, merge or rebase", l.req.Strategy)
	}
}

// replay creates the branch's own commits again on top of the target. It omits merges.
func (l *landing) replay(ctx context.Context) (string, error) {
	c := l.req.Landing
	tip, ok, err := integrate.Replay(ctx, l.w, c.Old, c.Tip, c.Old, func(tree string, of object.Commit, onto string) (string, error) {
		return l.store(ctx, tree, of.Message, integrate.AuthorOf(of.Author), onto)
	})
	if err == nil && (!ok || tip.Tree != c.Tree) {
		err = ErrCannotRebase
	}
	return tip.Oid, err
}
