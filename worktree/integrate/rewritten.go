package integrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// startingAt returns the commit to merge instead of theirs. If the target has dropped the start of the change, this is a
// commit with the files of theirs on top of the start, so that the start is the base of the merge.
func startingAt(ctx context.Context, w *repo.Worktree, start repo.Start, theirs string) (string, error) {
	if !start.Dropped {
		return theirs, nil
	}
	tree, err := w.Repo.Git().Tree(ctx, theirs)
	if err != nil {
		return "", err
	}
	return w.Repo.MakeCommit(ctx, tree, "coven: merge side\n", nil, start.Commit)
}

// maxDropped limits the number of dropped commits that are named.
const maxDropped = 5

// dropped names the commits of the former target start that theirs does not contain.
func dropped(ctx context.Context, w *repo.Worktree, start, theirs string) (string, error) {
	g := w.Repo.Git()
	out, err := g.Output(ctx, "rev-list", fmt.Sprint("--max-count=", maxDropped+1), start, "^"+theirs)
	if err != nil {
		return "", err
	}
	commits, err := g.Commits(ctx, strings.Fields(string(out))...)
	var named []string
	for i, c := range commits {
		if i == maxDropped {
			named = append(named, "and more")
			break
		}
		subject, _, _ := strings.Cut(c.Message, "\n")
		named = append(named, fmt.Sprintf("%.10s (%s)", c.Oid, subject))
	}
	return strings.Join(named, ", "), err
}

// rebase returns a commit with the change between start and tip on top of the target, and with the given tree, which is the
// result of their merge. It consists of the branch's own commits if they result in that tree, otherwise of one commit.
func rebase(ctx context.Context, w *repo.Worktree, start, tip string, target repo.Target, tree string) (string, error) {
	c, ok, err := Replay(ctx, w, start, tip, target.Tip, func(tree string, of object.Commit, onto string) (string, error) {
		return w.Repo.MakeCommit(ctx, tree, of.Message, AuthorOf(of.Author), onto)
	})
	if err != nil || ok && c.Tree == tree {
		return c.Oid, err
	}
	message := fmt.Sprintf("Rebase %s on %s\n", w.Branch, target.Branch)
	return w.Repo.MakeCommit(ctx, tree, message, nil, target.Tip)
}

// Replay creates the commits of a branch after start again, on top of onto. It omits merges and the commits whose change
// onto contains. store creates a commit on top of another, with a tree and the message and author of the original. ok is false
// if a commit conflicts or has no parent.
func Replay(ctx context.Context, w *repo.Worktree, start, tip, onto string, store func(tree string, of object.Commit, onto string) (string, error)) (last object.Commit, ok bool, err error) {
	g := w.Repo.Git()
	out, err := g.Output(ctx, "rev-list", "--reverse", "--topo-order", "--no-merges", tip, "^"+start, "^"+onto)
	if err != nil {
		return last, false, err
	}
	commits, err := g.Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return last, false, err
	}
	if last, err = g.Commit(ctx, onto); err != nil {
		return last, false, err
	}
	for _, c := range commits {
		tree, err := pick(ctx, w, c, last, onto)
		if _, conflict := errors.AsType[*ConflictError](err); conflict || errors.Is(err, errNoParent) {
			return last, false, nil
		}
		if err != nil {
			return last, false, err
		}
		if tree == last.Tree {
			continue
		}
		oid, err := store(tree, c, last.Oid)
		if err != nil {
			return last, false, err
		}
		last = object.Commit{Oid: oid, Tree: tree}
	}
	return last, true, nil
}

// errNoParent means that a commit has no parent to compare it with.
var errNoParent = errors.New("the commit has no parent")

// pick applies the change of one commit to last, and returns the tree. A temporary commit with the tree of last and the parent
// of the commit provides the base of the three-way merge.
func pick(ctx context.Context, w *repo.Worktree, c, last object.Commit, onto string) (string, error) {
	if len(c.Parents) != 1 {
		return "", errNoParent
	}
	ours, err := w.Repo.MakeCommit(ctx, last.Tree, "coven: rebase side\n", nil, c.Parents[0])
	if err != nil {
		return "", err
	}
	tree, err := MergeTree(ctx, w, ours, c.Oid)
	if err != nil {
		return "", err
	}
	return content.WithReserved(ctx, w.Repo, tree, onto)
}

// AuthorOf converts "Name <email> seconds zone" to environment variables.
func AuthorOf(ident string) []string {
	name, rest, found := strings.Cut(ident, " <")
	email, date, ended := strings.Cut(rest, "> ")
	if !found || !ended || name == "" {
		return nil
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=@" + date}
}
