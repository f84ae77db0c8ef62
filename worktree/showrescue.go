package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// RescuedPatch returns the contents that the changes of a rescue have, as a patch from before
// to after, of at most limit bytes. cut reports whether there is more.
func RescuedPatch(ctx context.Context, r *repo.Repo, info RescueInfo, limit int64) (patch []byte, cut bool, err error) {
	g, err := r.PlainGit()
	if err != nil {
		return nil, false, err
	}
	var trees []string
	for _, dir := range []string{beforeDir, afterDir} {
		tree, err := g.Line(ctx, "rev-parse", "--verify", "--quiet", info.Commit+":"+dir)
		if err != nil { // there was nothing, or is nothing left
			tree, err = g.Line(ctx, "hash-object", "-t", "tree", "-w", "--stdin")
		}
		if err != nil {
			return nil, false, fmt.Errorf("show %s: %w", info.Ref, err)
		}
		trees = append(trees, tree)
	}
	read := func(out io.Reader) error {
		var err error
		if patch, err = io.ReadAll(io.LimitReader(out, limit)); err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, out)
		cut = n > 0
		return err
	}
	err = g.Stream(ctx, nil, read, "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", trees[0], trees[1])
	if err != nil {
		return nil, false, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	return patch, cut, nil
}

// A RescuedFile is a file of a stored worktree. Status is A, M, D or T if it differs from the
// branch at that time, otherwise a space.
type RescuedFile struct {
	Path   string
	Status byte
}

// RescuedFiles lists the files of a stored worktree, and those that were deleted in it.
func RescuedFiles(ctx context.Context, r *repo.Repo, info RescueInfo) ([]RescuedFile, error) {
	g, err := r.PlainGit()
	if err != nil {
		return nil, err
	}
	commits, err := g.Commits(ctx, info.Commit)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	changed := map[string]byte{}
	var all []RescuedFile
	if len(commits[0].Parents) > 0 {
		changes, err := g.Changes(ctx, commits[0].Parents[0], info.Commit)
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", info.Ref, err)
		}
		for _, c := range changes {
			changed[c.Path] = c.Status
			if c.Status == 'D' {
				all = append(all, RescuedFile{c.Path, c.Status})
			}
		}
	}
	entries, err := g.Entries(ctx, info.Commit)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	for _, e := range entries {
		f := RescuedFile{e.Path, ' '}
		if status := changed[e.Path]; status != 0 {
			f.Status = status
		}
		all = append(all, f)
	}
	return all, nil
}

// ErrNotEmpty means that a directory that coven is to fill has files.
var ErrNotEmpty = errors.New("the directory is not empty")

// Export checks the files of a stored worktree out into a directory, which must be empty or not
// exist. Git directories of repositories inside the worktree keep the name .git.coven-rescue.
func Export(ctx context.Context, r *repo.Repo, info RescueInfo, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	w := &repo.Worktree{Repo: r, Name: content.ScratchName, Path: dir}
	g, err := content.RawGit(w)
	if err != nil {
		return err
	}
	ix, err := content.Open(w, g, "none")
	if err != nil {
		return err
	}
	defer ix.Drop()
	files, err := g.Entries(ctx, info.Commit)
	if err != nil {
		return fmt.Errorf("restore %s: %w", info.Ref, err)
	}
	var plain []git.Entry
	for _, e := range files {
		if e.Mode != git.ModeSubmodule { // its files are not here
			plain = append(plain, e)
		}
	}
	if err := ix.CheckOutOnly(ctx, plain); err != nil {
		return fmt.Errorf("restore %s: %w", info.Ref, err)
	}
	return nil
}
