package rescue

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A File is a file in a rescue. Status is A, M, D or T if it differs from the branch at the time of the
// rescue, otherwise a space.
type File struct {
	Path   string
	Status byte
}

// Files lists the files in a rescue, and the files that were deleted.
func Files(ctx context.Context, r *repo.Repo, info Info) ([]File, error) {
	g, err := r.PlainGit()
	if err != nil {
		return nil, err
	}
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
// directories keep the name .git.coven-rescue.
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
	var plain []object.Entry
	for _, e := range files {
		if e.Mode != object.ModeSubmodule { // its files are not available
			plain = append(plain, e)
		}
	}
	if err := ix.CheckOutOnly(ctx, plain); err != nil {
		return fmt.Errorf("restore %s: %w", info.Ref, err)
	}
	return nil
}
