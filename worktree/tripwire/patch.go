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
	g, err := r.PlainGit()
	if err != nil {
		return nil, false, err
	}
	var trees []string
	for _, dir := range []string{beforeDir, afterDir} {
		tree, err := g.Line(ctx, "rev-parse", "--verify", "--quiet", info.Commit+":"+dir)
		if err != nil { // nothing existed in this state
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
	err = g.Stream(ctx, nil, read, git.DiffArgs("diff-tree", "-r", "-p", "--no-renames", "--text", trees[0], trees[1])...)
	if err != nil {
		return nil, false, fmt.Errorf("show %s: %w", info.Ref, err)
	}
	return patch, cut, nil
}
