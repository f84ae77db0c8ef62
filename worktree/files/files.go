// Package files lists the files of checkouts and worktrees that git does not ignore.
package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Listing lists the files of a checkout or worktree by git's rules.
type Listing struct {
	Files   []string // tracked files, and untracked files that are not ignored; may contain nested repositories
	Ignored []string // completely ignored directories, and untracked repositories
	Depends []string // absolute paths of other files that determine which files are ignored or tracked
}

// ListCheckout lists the files of the checkout in which Open was called, without coven's files.
func ListCheckout(ctx context.Context, r *repo.Repo) (Listing, error) {
	return listIn(ctx, r, git.Repo{Dir: r.CheckoutGitDir, WorkTree: r.Checkout, Store: r.Store}, filepath.Join(r.CheckoutGitDir, "index"))
}

// List lists the files of a worktree, without coven's files.
func List(ctx context.Context, w *repo.Worktree) (Listing, error) {
	ix, err := content.Open(w, w.Git(), content.CommitIndex)
	if err != nil {
		return Listing{}, err
	}
	defer ix.Drop()
	l, err := listIn(ctx, w.Repo, ix.Git, ix.Kept)
	if gone := w.CheckExists(); gone != nil {
		return Listing{}, gone
	}
	return l, err
}

func listIn(ctx context.Context, r *repo.Repo, g git.Repo, index string) (Listing, error) {
	var l Listing
	ignored := make(chan error, 1)
	go func() {
		names, err := g.Fields(ctx, "ls-files", "-z", "-o", "-i", content.WithoutIgnored, "--directory")
		for _, name := range names {
			if dir, isDir := strings.CutSuffix(name, "/"); isDir {
				l.Ignored = append(l.Ignored, dir)
			}
		}
		ignored <- err
	}()
	files, err := g.Fields(ctx, "ls-files", "-z", "-c", "-o", content.WithoutIgnored)
	if ignoredErr := <-ignored; err == nil {
		err = ignoredErr
	}
	if err != nil {
		return Listing{}, fmt.Errorf("list the files of %s: %w", g.WorkTree, err)
	}
	for _, name := range files {
		dir, isDir := strings.CutSuffix(name, "/")
		switch {
		case isDir:
			l.Ignored = append(l.Ignored, dir)
		case !strings.HasPrefix(name, covenDir+"/"):
			l.Files = append(l.Files, name)
		}
	}
	slices.Sort(l.Files)
	l.Files = slices.Compact(l.Files) // a file in conflict has several index entries
	l.Ignored = append(l.Ignored, covenDir)
	l.Depends, err = deciding(ctx, r, g, index)
	return l, err
}

// covenDir is coven's directory in a checkout.
const covenDir = ".coven"

// deciding lists the files outside a checkout that determine its listing.
func deciding(ctx context.Context, r *repo.Repo, g git.Repo, index string) ([]string, error) {
	settings, err := g.Configured(ctx, `^core\.excludesfile$`, true)
	if err != nil {
		return nil, err
	}
	files := []string{index, filepath.Join(r.GitDir, "info", "exclude"), filepath.Join(r.GitDir, "config"), "/etc/gitconfig"}
	home := os.Getenv("HOME")
	user := os.Getenv("XDG_CONFIG_HOME")
	if user == "" {
		user = filepath.Join(home, ".config")
	}
	files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(user, "git", "config"), filepath.Join(user, "git", "ignore"))
	for _, s := range settings {
		if filepath.IsAbs(s.Value) {
			files = append(files, s.Value)
		}
	}
	return slices.DeleteFunc(files, func(name string) bool { return !filepath.IsAbs(name) }), nil
}

// Uncommitted lists the changed and untracked paths in Checkout, which a task's worktree will not contain.
// Directories end with a slash. It omits .beads and .coven.
func Uncommitted(ctx context.Context, r *repo.Repo) ([]string, error) {
	g := r.Git()
	g.Dir, g.WorkTree = r.CheckoutGitDir, r.Checkout
	fields, err := g.Fields(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return nil, fmt.Errorf("list uncommitted files: %w", err)
	}
	var paths []string
	for _, field := range fields {
		if len(field) < 4 {
			return nil, fmt.Errorf("list uncommitted files: git printed %q", field)
		}
		if !IsCovens(field[3:]) {
			paths = append(paths, field[3:])
		}
	}
	return paths, nil
}

// IsCovens reports whether a path of a checkout belongs to coven or to the tracker.
func IsCovens(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return top == ".beads" || top == ".coven"
}
