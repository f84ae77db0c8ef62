package land

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
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
	out, err := l.git.Output(ctx, "rev-list", "--reverse", "--topo-order", "--no-merges", c.Tip, "^"+c.Old)
	if err != nil {
		return "", err
	}
	commits, err := l.git.Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return "", err
	}
	tip, err := l.git.Commit(ctx, c.Old)
	for _, commit := range commits {
		if err != nil {
			break
		}
		tip, err = l.pick(ctx, commit, tip)
	}
	if _, conflict := errors.AsType[*integrate.ConflictError](err); conflict || err == nil && tip.Tree != c.Tree {
		return "", ErrCannotRebase
	}
	return tip.Oid, err
}

// pick applies the change of one commit to tip. A temporary commit with the tree of tip and the parent of
// commit provides the base of the three-way merge.
func (l *landing) pick(ctx context.Context, commit, tip object.Commit) (object.Commit, error) {
	if len(commit.Parents) != 1 {
		return tip, fmt.Errorf("%s has no parent: %w", commit.Oid, ErrCannotRebase)
	}
	r := l.w.Repo
	ours, err := r.MakeCommit(ctx, tip.Tree, "coven: rebase side\n", nil, commit.Parents[0])
	if err != nil {
		return tip, err
	}
	tree, err := integrate.MergeTree(ctx, l.w, ours, commit.Oid)
	if err != nil {
		return tip, err
	}
	if tree, err = content.WithReserved(ctx, r, tree, l.req.Landing.Old); err != nil || tree == tip.Tree {
		return tip, err
	}
	oid, err := l.store(ctx, tree, commit.Message, authorOf(commit.Author), tip.Oid)
	return object.Commit{Oid: oid, Tree: tree}, err
}

// authorOf converts "Name <email> seconds zone" to environment variables.
func authorOf(ident string) []string {
	name, rest, found := strings.Cut(ident, " <")
	email, date, ended := strings.Cut(rest, "> ")
	if !found || !ended || name == "" {
		return nil
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=@" + date}
}
