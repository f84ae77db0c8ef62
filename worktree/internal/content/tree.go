package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// Tree stores the worktree's current content and returns its tree. As in a commit, the tree contains
// tracked files and untracked files that are not ignored. It equals the tree of the branch's tip if and
// only if there is nothing to commit. Reserved paths (.beads, .coven/sessions) are those of the branch's
// tip.
func Tree(ctx context.Context, w *repo.Worktree) (string, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return "", err
	}
	ix, err := Open(w, w.Git(), CommitIndex)
	if err != nil {
		return "", err
	}
	defer ix.Drop()
	tree, err := ix.StageFor(ctx, tip, tip)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", w.Path, w.OrMissing(err))
	}
	return tree, ix.Keep()
}

// StageFor stages the worktree on top of tip, with the reserved paths of the commit reservedFrom, and
// returns the tree.
func (ix *Index) StageFor(ctx context.Context, tip, reservedFrom string) (string, error) {
	tree, err := ix.Worktree.Repo.Git().Tree(ctx, tip)
	if err != nil {
		return "", err
	}
	// The index must contain tip's files first, because ignore rules may match tracked files.
	if ix.KnownTree() != tree {
		if err := ix.Read(ctx, tip); err != nil {
			return "", err
		}
	}
	l, err := ix.Stage(ctx)
	if err != nil {
		return "", err
	}
	if err := recordDeleted(ix.Worktree, tip, l); err != nil {
		return "", err
	}
	changed, err := ix.reserve(ctx, tree, reservedFrom, l)
	if err != nil {
		return "", err
	}
	if changed || !l.Clean() {
		tree, err = ix.WriteTree(ctx)
	}
	ix.SetEqual(tree)
	return tree, errors.Join(err, ix.Worktree.CheckExists()) // a missing worktree does not mean deleted files
}

// A keptTree is the checksum of an index and the tree that it is equal to. It is kept only in memory: if a
// program of a task writes to the index, the checksum differs.
type keptTree struct {
	content [sha256.Size]byte
	tree    string
	outside string // sparse.OutsideText of the worktree
}

// SetEqual records that the index has exactly the entries of tree. If the index does not change before it
// is kept, the next operation need not read the tree.
func (ix *Index) SetEqual(tree string) {
	ix.equals = keptTree{}
	if content, err := file.Sum(ix.Git.Index); err == nil {
		ix.equals = keptTree{content, tree, sparse.OutsideText(ix.Worktree)}
	}
}

// KnownTree returns the tree that the index is equal to. It returns "" if that is unknown or the index has
// changed; git must then read or write a tree.
func (ix *Index) KnownTree() string {
	known, noted := ix.Worktree.Repo.Memo.Trees.Load(ix.Kept)
	if !noted {
		return ""
	}
	if content, err := file.Sum(ix.Git.Index); err != nil || content != known.(keptTree).content || sparse.OutsideText(ix.Worktree) != known.(keptTree).outside {
		return ""
	}
	return known.(keptTree).tree
}

// reserve replaces the reserved entries with those of the commit from, and reports whether it changed the
// index. The index had the entries of tree before the worktree was staged with listing l.
func (ix *Index) reserve(ctx context.Context, tree, from string, l Listing) (bool, error) {
	var present []object.Entry
	var err error
	if slices.ContainsFunc(slices.Concat(l.Stale, l.Untracked, l.Nested, l.links), nearReserved) {
		present, err = ix.reservedEntries(ctx)
	} else {
		present, err = ix.Worktree.Repo.Git().Entries(ctx, tree, Reserved()...)
	}
	if err != nil {
		return false, err
	}
	return ix.ReplaceReserved(ctx, present, from)
}

// nearReserved reports whether staging a path may change reserved entries: whether it is, contains, or is
// below a reserved path.
func nearReserved(p string) bool {
	return IsReserved(p) || slices.ContainsFunc(Reserved(), func(dir string) bool { return strings.HasPrefix(dir, p+"/") })
}

// ResetReserved replaces the reserved entries with those of a commit. Unlike reserve, it reads the present
// entries from the index.
func (ix *Index) ResetReserved(ctx context.Context, from string) error {
	present, err := ix.reservedEntries(ctx)
	if err != nil {
		return err
	}
	_, err = ix.ReplaceReserved(ctx, present, from)
	return err
}

func (ix *Index) reservedEntries(ctx context.Context) ([]object.Entry, error) {
	fields, err := ix.Git.Fields(ctx, append([]string{"ls-files", "-z", "-s", "--"}, Reserved()...)...)
	if err != nil {
		return nil, err
	}
	return indexEntries(fields)
}

// ReplaceReserved replaces the reserved entries in present with those of the commit from, and reports
// whether it changed the index.
func (ix *Index) ReplaceReserved(ctx context.Context, present []object.Entry, from string) (changed bool, err error) {
	want, err := ix.Worktree.Repo.Git().Entries(ctx, from, Reserved()...)
	if err != nil {
		return false, err
	}
	edits := replacing(present, want)
	return len(edits) > 0, ix.Put(ctx, edits)
}

// indexEntries parses the output of `ls-files -s -z`.
func indexEntries(fields []string) ([]object.Entry, error) {
	entries := make([]object.Entry, 0, len(fields))
	for _, field := range fields {
		e, err := IndexEntry(field)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// IndexEntry parses an entry in the format of `git ls-files -s`: "MODE OID STAGE\tpath".
func IndexEntry(field string) (object.Entry, error) {
	meta, name, found := strings.Cut(field, "\t")
	words := strings.Fields(meta)
	if !found || len(words) != 3 {
		return object.Entry{}, fmt.Errorf("git printed an unknown entry %q", field)
	}
	return object.Entry{Mode: words[0], Oid: words[1], Path: name}, nil
}

// replacing returns the edits that turn present into want.
func replacing(present, want []object.Entry) []object.Entry {
	has := make(map[object.Entry]bool, len(present))
	for _, e := range present {
		has[e] = true
	}
	wanted := make(map[string]bool, len(want))
	for _, e := range want {
		wanted[e.Path] = true
	}
	var edits []object.Entry
	for _, e := range present {
		if !wanted[e.Path] {
			edits = append(edits, object.Entry{Mode: "0", Path: e.Path})
		}
	}
	for _, e := range want {
		if !has[e] {
			edits = append(edits, e)
		}
	}
	return edits
}

// ScratchName replaces the task name for indexes that belong to no task.
const ScratchName = ".scratch"

// WithReserved returns the tree of treeish with the reserved paths of another commit or tree.
func WithReserved(ctx context.Context, r *repo.Repo, treeish, from string) (string, error) {
	return TreeWithPaths(ctx, r, treeish, from, Reserved())
}

// TreeWithPaths returns the tree of treeish with the given files and directories of another commit or tree.
func TreeWithPaths(ctx context.Context, r *repo.Repo, treeish, from string, paths []string) (string, error) {
	have, err := r.Git().Entries(ctx, treeish, paths...)
	if err != nil {
		return "", err
	}
	want, err := r.Git().Entries(ctx, from, paths...)
	if err != nil {
		return "", err
	}
	edits := replacing(have, want)
	if len(edits) == 0 {
		return r.Git().Tree(ctx, treeish)
	}
	scratch := &repo.Worktree{Repo: r, Name: ScratchName, Path: r.Root}
	return EditTree(ctx, scratch, scratch.Git(), treeish, edits)
}

// EditTree applies edits to a tree, or to an empty one if treeish is empty, and returns the new tree. The
// index for it is a file of the worktree w.
func EditTree(ctx context.Context, w *repo.Worktree, g git.Repo, treeish string, edits []object.Entry) (string, error) {
	ix, err := Open(w, g, "none")
	if err != nil {
		return "", err
	}
	defer ix.Drop()
	if treeish != "" {
		if err := ix.Git.Run(ctx, "read-tree", treeish); err != nil {
			return "", err
		}
	}
	if err := ix.Put(ctx, edits); err != nil {
		return "", err
	}
	return ix.WriteTree(ctx)
}

// EntriesByPath returns the entries of a tree, indexed by path.
func EntriesByPath(ctx context.Context, w *repo.Worktree, tree string) (map[string]object.Entry, error) {
	list, err := w.Repo.Git().Entries(ctx, tree)
	entries := make(map[string]object.Entry, len(list))
	for _, e := range list {
		entries[e.Path] = e
	}
	return entries, err
}

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
