package rescue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A File is a file in a rescue. Status is A, M, D or T if it differs from the branch at the time of the
// rescue, otherwise a space.
type File struct {
	Path   string
	Status byte
}

// Files lists the files in a rescue, those of its private part last, and the files that were deleted. If the private part
// is gone, it returns the others and ErrPartGone.
func Files(ctx context.Context, r *repo.Repo, info Info) ([]File, error) {
	parts, err := Parts(ctx, r, info)
	if len(parts) == 0 {
		return nil, err
	}
	all, filesErr := publicFiles(ctx, parts[0].Git, info)
	if err = errors.Join(err, filesErr); err != nil || len(parts) == 1 {
		return all, err
	}
	entries, err := parts[1].Git.Entries(ctx, info.Private)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	shown := map[string]int{}
	for i, f := range all {
		shown[f.Path] = i
	}
	for _, e := range entries {
		if i, twice := shown[e.Path]; twice { // staged, and on the branch
			all[i].Status = 'M'
			continue
		}
		all = append(all, File{e.Path, 'A'})
	}
	return all, nil
}

// publicFiles lists the files in the commit of a rescue, and those that were deleted.
func publicFiles(ctx context.Context, g git.Repo, info Info) ([]File, error) {
	commits, err := g.Commits(ctx, info.Commit)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	changed := map[string]byte{}
	var all []File
	if len(commits[0].Parents) > 0 {
		changes, err := g.Changes(ctx, commits[0].Parents[0], info.Commit)
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", info.Ref, err)
		}
		for _, c := range changes {
			changed[c.Path] = c.Status
			if c.Status == 'D' {
				all = append(all, File{c.Path, c.Status})
			}
		}
	}
	entries, err := g.Entries(ctx, info.Commit)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	for _, e := range entries {
		f := File{e.Path, ' '}
		if status := changed[e.Path]; status != 0 {
			f.Status = status
		}
		all = append(all, f)
	}
	return all, nil
}

// ErrNotEmpty means that the destination directory is not empty.
var ErrNotEmpty = errors.New("the directory is not empty")

// Export checks out the files of a rescue into a directory, which must be empty or not exist. Nested git
// directories keep the name .git.coven-rescue. If the private part is gone, it checks out the others and returns
// ErrPartGone.
func Export(ctx context.Context, r *repo.Repo, info Info, dir string) error {
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
	raw, err := content.RawGit(w)
	if err != nil {
		return err
	}
	parts, partErr := Parts(ctx, r, info)
	for i, part := range parts {
		g := raw
		if i > 0 {
			g = part.Git
			g.WorkTree = dir
		}
		if err := exportPart(ctx, w, g, part.Commit); err != nil {
			return fmt.Errorf("restore %s: %w", info.Ref, err)
		}
	}
	return partErr
}

// exportPart checks out the files of a commit. Those that exist are replaced.
func exportPart(ctx context.Context, w *repo.Worktree, g git.Repo, commit string) error {
	ix, err := content.Open(w, g, "none")
	if err != nil {
		return err
	}
	defer ix.Drop()
	files, err := g.Entries(ctx, commit)
	if err != nil {
		return err
	}
	var plain []object.Entry
	for _, e := range files {
		if e.Mode != object.ModeSubmodule { // its files are not available
			plain = append(plain, e)
		}
	}
	top, err := os.OpenRoot(w.Path)
	if err != nil {
		return err
	}
	defer top.Close() //nolint:errcheck // nothing is written through it
	for _, e := range plain {
		if err := top.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return ix.CheckOutOnly(ctx, plain)
}
