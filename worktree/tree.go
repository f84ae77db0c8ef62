package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// Tree stores W's current content and returns its tree: tracked files and untracked
// ones that are not ignored, as in a commit. It equals the tree of the branch's tip if
// and only if there is nothing to commit. Reserved paths (.beads, .coven/sessions) are
// as in the branch's tip.
func (w *Worktree) Tree(ctx context.Context) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	ix, err := w.openIndex(w.git(), commitIndex)
	if err != nil {
		return "", err
	}
	defer ix.drop()
	tree, err := ix.stageFor(ctx, tip, tip)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", w.Path, w.orGone(err))
	}
	return tree, ix.keep()
}

// stageFor stages W on top of tip with the reserved paths of another commit,
// and returns the tree.
func (ix *index) stageFor(ctx context.Context, tip, reservedFrom string) (string, error) {
	// The index must contain tip's files first, because a tracked file may be ignored.
	if err := ix.git.Run(ctx, "read-tree", "--reset", tip); err != nil {
		return "", err
	}
	if _, err := ix.stage(ctx); err != nil {
		return "", err
	}
	if err := ix.reserve(ctx, reservedFrom); err != nil {
		return "", err
	}
	tree, err := ix.tree(ctx)
	return tree, errors.Join(err, ix.w.here()) // files of a missing W are not deleted files
}

// reserve replaces the reserved entries by those of a commit.
func (ix *index) reserve(ctx context.Context, from string) error {
	fields, err := ix.git.Fields(ctx, append([]string{"ls-files", "-z", "-s", "--"}, reserved()...)...)
	if err != nil {
		return err
	}
	want, err := ix.git.Entries(ctx, from, reserved()...)
	if err != nil {
		return err
	}
	present, err := indexEntries(fields)
	if err != nil {
		return err
	}
	return ix.put(ctx, replacing(present, want))
}

// indexEntries reads `ls-files -s -z`.
func indexEntries(fields []string) ([]git.Entry, error) {
	entries := make([]git.Entry, 0, len(fields))
	for _, field := range fields {
		e, err := indexEntry(field)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func indexEntry(field string) (git.Entry, error) {
	meta, name, found := strings.Cut(field, "\t")
	words := strings.Fields(meta)
	if !found || len(words) != 3 {
		return git.Entry{}, fmt.Errorf("git printed an unknown entry %q", field)
	}
	return git.Entry{Mode: words[0], Oid: words[1], Path: name}, nil
}

// replacing returns the edits that turn present into want.
func replacing(present, want []git.Entry) []git.Entry {
	has := make(map[git.Entry]bool, len(present))
	for _, e := range present {
		has[e] = true
	}
	wanted := make(map[string]bool, len(want))
	for _, e := range want {
		wanted[e.Path] = true
	}
	var edits []git.Entry
	for _, e := range present {
		if !wanted[e.Path] {
			edits = append(edits, git.Entry{Mode: "0", Path: e.Path})
		}
	}
	for _, e := range want {
		if !has[e] {
			edits = append(edits, e)
		}
	}
	return edits
}

// scratchName is used in place of a task's name for indexes that belong to no task.
const scratchName = ".scratch"

// withReserved returns the tree of treeish with the reserved paths of another commit
// or tree.
func (r *Repo) withReserved(ctx context.Context, treeish, from string) (string, error) {
	have, err := r.git().Entries(ctx, treeish, reserved()...)
	if err != nil {
		return "", err
	}
	want, err := r.git().Entries(ctx, from, reserved()...)
	if err != nil {
		return "", err
	}
	edits := replacing(have, want)
	if len(edits) == 0 {
		return r.git().Line(ctx, "rev-parse", "--verify", treeish+"^{tree}")
	}
	scratch := &Worktree{repo: r, name: scratchName, Path: r.Root}
	ix, err := scratch.openIndex(scratch.git(), "none")
	if err != nil {
		return "", err
	}
	defer ix.drop()
	if err := ix.git.Run(ctx, "read-tree", treeish); err != nil {
		return "", err
	}
	if err := ix.put(ctx, edits); err != nil {
		return "", err
	}
	return ix.tree(ctx)
}
