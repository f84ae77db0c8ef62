package tripwire

import (
	"context"
	"fmt"
	"io"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// RescuedPatch returns the changed contents in a rescue as a patch of at most limit bytes. cut reports
// whether the patch was longer.
func RescuedPatch(ctx context.Context, r *repo.Repo, info rescue.Info, limit int64) (patch []byte, cut bool, err error) {
	parts, err := rescue.Parts(ctx, r, info)
	if err != nil {
		return nil, false, err
	}
	for _, part := range parts {
		more, moreCut, err := patchOf(ctx, part, limit-int64(len(patch)))
		if err != nil {
			return nil, false, fmt.Errorf("show %s: %w", info.Ref, err)
		}
		patch, cut = append(patch, more...), cut || moreCut
	}
	return patch, cut, nil
}

// patchOf is RescuedPatch for a part of a rescue.
func patchOf(ctx context.Context, part rescue.Part, limit int64) (patch []byte, cut bool, err error) {
	g := part.Git
	var trees []string
	for _, dir := range []string{beforeDir, afterDir} {
		tree, err := g.Line(ctx, "rev-parse", "--verify", "--quiet", part.Commit+":"+dir)
		if err != nil { // nothing existed in this state
			tree, err = g.Line(ctx, "hash-object", "-t", "tree", "-w", "--stdin")
		}
		if err != nil {
			return nil, false, err
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
	err = g.Stream(ctx, nil, read, git.DiffArgs("diff-tree", "-r", "-p", "--no-renames", "--text", trees[0], trees[1])...)
	return patch, cut, err
}
