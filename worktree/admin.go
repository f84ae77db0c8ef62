package worktree

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coven-run/coven/internal/regularfile"
)

// keepAdmin rescues content that only the git directory of a deleted worktree has: the
// commit of HEAD, staged changes, and the commits of submodules.
func (w *Worktree) keepAdmin(ctx context.Context, note string) error {
	parents, err := w.rescueParents(ctx)
	if err != nil {
		return err
	}
	kept, err := w.repo.reachable(ctx, parents)
	if err != nil {
		return err
	}
	g := w.git()
	g.WorkTree = w.repo.Root // W does not exist, and none of its files is needed
	ix, err := w.openIndex(g, "none")
	if err != nil {
		return err
	}
	defer ix.drop()
	tree, staged := w.stagedThere(ctx, ix)
	if staged {
		for _, parent := range parents {
			commit, err := w.repo.git().Commit(ctx, parent)
			if err != nil {
				return err
			}
			staged = staged && commit.Tree != tree
		}
	}
	found := hiddenFiles{renamed: map[string]string{}}
	if err := found.addBelow(filepath.Join(w.admin, "modules"), rescuedGitDir+"/modules"); err != nil {
		return err
	}
	if kept && !staged && len(found.renamed) == 0 {
		return nil
	}
	if err := ix.takeAs(ctx, found.renamed); err != nil {
		return err
	}
	if tree, err = ix.tree(ctx); err != nil {
		return err
	}
	_, err = w.saveRescue(ctx, note, tree)
	return err
}

// stagedThere loads the changes that the agent had staged. An index that cannot be
// stored, for example during a merge, is ignored.
func (w *Worktree) stagedThere(ctx context.Context, ix *index) (string, bool) {
	if err := copyPlain(ix.git.Index, filepath.Join(w.admin, "index")); err != nil {
		return "", false
	}
	tree, err := ix.tree(ctx)
	if err != nil {
		_ = os.Remove(ix.git.Index)
	}
	return tree, err == nil
}

// reachable reports whether refs reach all of these commits.
func (r *Repo) reachable(ctx context.Context, commits []string) (bool, error) {
	for _, commit := range commits {
		out, err := r.git().Output(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit)
		if err != nil || len(out) == 0 {
			return false, err
		}
	}
	return true, nil
}

// copyPlain copies a regular file without following links.
func copyPlain(to, from string) (err error) {
	in, err := regularfile.Open(from, syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
