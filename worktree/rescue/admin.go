package rescue

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// KeepAdmin rescues content that exists only in the git directory of a deleted worktree: commits, staged
// changes, a merge in progress, and the commits of submodules.
func KeepAdmin(ctx context.Context, w *repo.Worktree, note string) error {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return err
	}
	var parents []string
	if tip != "" {
		parents = []string{tip}
	}
	kept, err := reachable(ctx, w.Repo, parents)
	if err != nil {
		return err
	}
	_, err = rescueAdmin(ctx, w, note, tip, func(found GitWork) bool { return !kept || !found.Empty() })
	return err
}

// rescueAdmin stores the tree of a commit, which may be empty, and the work in the worktree's git
// directory. If needed returns false for that work, it stores nothing.
func rescueAdmin(ctx context.Context, w *repo.Worktree, note, commit string, needed func(GitWork) bool) (Info, error) {
	own, err := AdminWork(ctx, w, commit)
	if err != nil || needed != nil && !needed(own) {
		return Info{}, err
	}
	private, err := NewPrivate(w.Repo)
	if err != nil {
		return Info{}, err
	}
	if err := private.addWork(ctx, w, own); err != nil {
		return Info{}, err
	}
	tree, err := treeOf(ctx, w.Repo, commit)
	if err != nil {
		return Info{}, err
	}
	return storeParts(ctx, w, note, tree, private, own.bases)
}

// treeOf returns the tree of a commit, or an empty one without a commit.
func treeOf(ctx context.Context, r *repo.Repo, commit string) (string, error) {
	if commit != "" {
		return r.Git().Tree(ctx, commit)
	}
	return content.EditTree(ctx, &repo.Worktree{Repo: r, Name: content.ScratchName}, r.Git(), "", nil)
}

// AdminWork is FindGitWork with the git directories of submodules. Because there is no worktree, staged
// entries are stored as its files.
func AdminWork(ctx context.Context, w *repo.Worktree, tree string) (GitWork, error) {
	own, err := FindGitWork(ctx, w, tree)
	if err != nil || w.Admin == "" {
		return own, err
	}
	for i, e := range own.staged {
		own.staged[i].Path = strings.TrimPrefix(e.Path, stagedDir+"/0/")
	}
	return own, (&HiddenFiles{Renamed: own.files}).AddModules(w, filepath.Join(w.Admin, submodule.ModulesDir), GitDirName+"/modules")
}

// reachable reports whether refs reach all of these commits.
func reachable(ctx context.Context, r *repo.Repo, commits []string) (bool, error) {
	for _, commit := range commits {
		out, err := r.Git().Output(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains", commit)
		if err != nil || len(out) == 0 {
			return false, err
		}
	}
	return true, nil
}
