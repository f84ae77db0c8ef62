package land

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A FilterError means that a filter of the repository fails for a file that has not changed.
type FilterError struct {
	Path, Filter string
	Err          error
}

func (e *FilterError) Error() string {
	return fmt.Sprintf("filter %s fails for %s: %v", e.Filter, e.Path, e.Err)
}

func (e *FilterError) Unwrap() error { return e.Err }

// Rehearse tries what a later commit and landing of the worktree need, with the message that they would have: the hooks
// prepare-commit-msg and commit-msg, the signature of the commit to land, and each filter with one file. It changes neither
// refs nor files. The error is a *commit.HookError, a *SignError or a *FilterError.
func Rehearse(ctx context.Context, w *repo.Worktree, message string, hooks commit.HookRunner) error {
	lock, err := w.Lock(ctx, "rehearse")
	if err != nil {
		return err
	}
	defer lock.Release()
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	c, err := w.Repo.Git().Commit(ctx, tip)
	if err != nil {
		return err
	}
	l := &landing{w: w, git: w.Repo.Git(), req: Request{Message: message, Hooks: hooks, Landing: integrate.Landing{Tip: tip, Tree: c.Tree}}}
	l.git.Hold = lock.File()
	if err := l.rehearseCommit(ctx, c.Tree); err != nil {
		return err
	}
	if l.req.Message, err = l.message(ctx); err != nil {
		return err
	}
	if _, err := l.store(ctx, c.Tree, l.req.Message, nil, tip); err != nil { // no ref names it
		return err
	}
	return l.rehearseFilters(ctx, c.Tree)
}

// rehearseCommit runs the hooks of a commit in the worktree, which may be others than those of the landing.
func (l *landing) rehearseCommit(ctx context.Context, tree string) error {
	ix, err := content.Open(l.w, l.w.Git(), "none")
	if err != nil {
		return err
	}
	defer ix.Drop()
	set, err := commit.Hooks(ctx, l.w, l.req.Hooks, ix)
	if err != nil {
		return err
	}
	defer set.Drop()
	if !set.Has(commit.PrepareMsg) && !set.Has(commit.CommitMsg) {
		return nil
	}
	if err := ix.Git.Run(ctx, "read-tree", tree); err != nil {
		return err
	}
	_, err = set.Message(ctx, l.req.Message, commit.PrepareHook(), commit.MessageHook{Name: commit.CommitMsg})
	return err
}

// rehearseFilters converts one unchanged file with each filter.
func (l *landing) rehearseFilters(ctx context.Context, tree string) error {
	filters, err := l.git.Configured(ctx, `^filter\..*\.(clean|process)$`, false)
	if err != nil || len(filters) == 0 {
		return err
	}
	entries, err := l.git.Entries(ctx, tree)
	if err != nil {
		return err
	}
	var paths []string
	for _, e := range entries {
		if e.Mode == "100644" || e.Mode == "100755" {
			paths = append(paths, e.Path)
		}
	}
	g := l.w.Git()
	attributes, err := content.Attributes(ctx, g, "filter", paths)
	if err != nil {
		return err
	}
	var tried []string
	for _, p := range paths {
		filter := attributes[p]
		if slices.Contains(append(tried, "unspecified", "unset", "set"), filter) {
			continue
		}
		if tried = append(tried, filter); !slices.ContainsFunc(filters, func(s git.Setting) bool {
			return s.Key == "filter."+filter+".clean" || s.Key == "filter."+filter+".process"
		}) {
			continue
		}
		file, err := regularfile.ReadIn(l.w.Path, filepath.FromSlash(p), maxFiltered)
		if errors.Is(err, os.ErrNotExist) || errors.As(err, new(*regularfile.SizeError)) {
			continue // not checked out, or too large to try
		}
		if err == nil {
			_, err = g.Feed(ctx, file, "hash-object", "--stdin", "--path", p)
		}
		if err != nil {
			return &FilterError{Path: p, Filter: filter, Err: err}
		}
	}
	return nil
}

// maxFiltered limits the size of a file for a filter, in bytes.
const maxFiltered = 10 << 20
