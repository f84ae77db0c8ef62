package content

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// Reserved returns the paths whose content on a branch always equals the target's: the tracker's file and
// the session records.
func Reserved() []string { return []string{".beads", ".coven/sessions"} }

// IsReserved reports whether p is a reserved path or below one.
func IsReserved(p string) bool {
	for _, dir := range Reserved() {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// A Listing is git's comparison of a worktree with an index.
type Listing struct {
	Stale             []string       // entries that differ from their file, or whose file is missing
	Untracked         []string       // files without an entry that are neither ignored nor left out
	Nested            []string       // repositories without an entry; the paths have no trailing slash
	LeftOut           []LeftOut      // new paths that are left out of the change, although git does not ignore them
	LeftFiles         []string       // their files, and repositories with a trailing slash
	entries           []string       // paths of all entries
	links             []string       // entries of type commit: submodules and nested repositories
	skipped           []object.Entry // entries that a sparse worktree does not check out
	skippedButPresent []string       // skipped entries whose file exists; they are also in Stale
}

// Clean reports whether the listing shows no differences and no links. Links would need a closer
// examination.
func (l *Listing) Clean() bool {
	return len(l.Stale)+len(l.Untracked)+len(l.Nested)+len(l.links) == 0
}

// Options of list.
const (
	WithoutIgnored = "--exclude-standard"
	withIgnored    = "--" // ignored files are listed as untracked
)

// List compares the worktree with the index.
func (ix *Index) List(ctx context.Context, option string) (l Listing, err error) {
	fields, err := ix.Git.Fields(ctx, "ls-files", "-z", "-t", "-s", "-c", "-m", "-d", "-o", option)
	if err != nil {
		return l, err
	}
	for _, field := range fields {
		if err := l.add(field); err != nil {
			return l, err
		}
	}
	l.skippedButPresent = sparse.Present(ix.Worktree, l.skipped)
	l.Stale = append(l.Stale, l.skippedButPresent...)
	if option == WithoutIgnored {
		err = ix.leaveOut(ctx, &l)
	}
	return l, err
}

// add parses "? path" or "TAG MODE OID STAGE\tpath".
func (l *Listing) add(field string) error {
	if name, found := strings.CutPrefix(field, "? "); found {
		if dir, isDir := strings.CutSuffix(name, "/"); isDir {
			l.Nested = append(l.Nested, dir)
		} else {
			l.Untracked = append(l.Untracked, name)
		}
		return nil
	}
	meta, name, found := strings.Cut(field, "\t")
	words := strings.Fields(meta)
	if !found || len(words) != 4 {
		return fmt.Errorf("git printed an unknown entry %q", field)
	}
	if words[0] == "S" {
		l.skipped = append(l.skipped, object.Entry{Mode: words[1], Oid: words[2], Path: name})
		l.entries = append(l.entries, name)
		return nil
	}
	if words[0] != "H" {
		l.Stale = append(l.Stale, name) // possibly twice: as modified and as deleted
		return nil
	}
	l.entries = append(l.entries, name)
	if words[1] == object.ModeSubmodule {
		l.links = append(l.links, name)
	}
	return nil
}

// Stage updates the index to the content of the worktree: tracked files, and untracked files that are not
// ignored. Nested repositories are added as plain files. For submodules in .gitmodules, the index contains
// the commit; see leftLinks. If the worktree does not exist before or after, the error is ErrNoWorktree.
func (ix *Index) Stage(ctx context.Context) (Listing, error) {
	if err := ix.Worktree.CheckExists(); err != nil {
		return Listing{}, err
	}
	l, err := ix.stageAll(ctx)
	ix.LeftOut = l.LeftOut
	return l, ix.Worktree.OrMissing(err)
}

func (ix *Index) stageAll(ctx context.Context) (Listing, error) {
	l, err := ix.List(ctx, WithoutIgnored)
	if err != nil {
		return l, fmt.Errorf("list the files of %s: %w", ix.Worktree.Path, err)
	}
	left, err := ix.leftLinks()
	if err != nil {
		return l, err
	}
	if err := ix.mark(ctx, unskipOption, l.skippedButPresent); err != nil {
		return l, err
	}
	paths := append(l.Stale, l.Untracked...)
	links := l.links
	repositories := without(l.Nested, submodule.LeftBehind(ix.Worktree, left, l.Nested))
	if len(links) > 0 {
		unknown, err := ix.unknownLinks(ctx, links)
		if err != nil {
			return l, err
		}
		paths, links = without(paths, unknown), without(links, unknown)
		repositories = append(repositories, unknown...)
	}
	inside, err := ix.filesInside(ctx, repositories)
	if err != nil {
		return l, err
	}
	if err := ix.Update(ctx, append(paths, inside...)); err != nil {
		return l, fmt.Errorf("stage the files of %s: %w", ix.Worktree.Path, err)
	}
	return l, ix.countLeft(ctx, left, links)
}

// unknownLinks returns the links that are not submodules and whose directory contains files. `git add` of a
// nested repository creates such links.
func (ix *Index) unknownLinks(ctx context.Context, links []string) ([]string, error) {
	known, err := submodule.Paths(ctx, ix.Worktree)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, link := range links {
		entries, err := os.ReadDir(filepath.Join(ix.Worktree.Path, link))
		if err == nil && len(entries) > 0 && !slices.Contains(known, link) {
			unknown = append(unknown, link)
		}
	}
	return unknown, nil
}

// filesInside lists the files in nested repositories that neither the inner nor the outer ignore rules
// match.
func (ix *Index) filesInside(ctx context.Context, repositories []string) ([]string, error) {
	var all []string
	for queue := repositories; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		g := ix.Git
		g.WorkTree, g.Index = filepath.Join(ix.Worktree.Path, dir), filepath.Join(ix.Dir, "none")
		fields, err := g.Fields(ctx, "ls-files", "-z", "-o", "--exclude-standard")
		if err != nil {
			return nil, fmt.Errorf("list the repository %s: %w", dir, err)
		}
		for _, name := range fields {
			if deeper, isDir := strings.CutSuffix(name, "/"); isDir {
				queue = append(queue, path.Join(dir, deeper))
			} else {
				all = append(all, path.Join(dir, name))
			}
		}
	}
	return ix.notIgnored(ctx, all)
}

// Unstageable lists the untracked files that git leaves out without an error, because another system takes an element
// of their path for .git.
func (ix *Index) Unstageable(ctx context.Context) ([]string, error) {
	g := ix.Git
	g.Settings = append(slices.Clip(g.Settings), git.Setting{Key: "core.protectHFS", Value: "false"}, git.Setting{Key: "core.protectNTFS", Value: "false"})
	names, err := g.Fields(ctx, "ls-files", "-z", "-o", WithoutIgnored)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", ix.Worktree.Path, err)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !slices.ContainsFunc(strings.Split(name, "/"), file.IsGitDirElsewhere)
	}), nil
}

func (ix *Index) notIgnored(ctx context.Context, paths []string) ([]string, error) {
	ignored, err := IgnoredBy(ctx, ix.Git, paths)
	return without(paths, ignored), err
}

// IgnoredBy returns the paths that the repository's ignore rules match.
func IgnoredBy(ctx context.Context, g git.Repo, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	// check-ignore does not support literal pathspecs; the prefix ./ avoids magic.
	g.Env = append([]string{"GIT_LITERAL_PATHSPECS=0"}, g.Env...)
	var asked []string
	for _, p := range paths {
		asked = append(asked, "./"+p)
	}
	out, err := g.Feed(ctx, git.Join(asked), "check-ignore", "-z", "--stdin", "--no-index")
	if err != nil && git.ExitCode(err) != 1 { // exit code 1 means that none is ignored
		return nil, fmt.Errorf("ask for ignored files: %w", err)
	}
	found := git.Split(out)
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], "./")
	}
	return found, nil
}

// StageOn opens the index for commits, stages the worktree on top of the commit tip, and returns the tree.
// Its reserved paths are those of tip. git processes inherit the lock l, unless it is nil.
func StageOn(ctx context.Context, w *repo.Worktree, tip string, l *lock.Lock) (*Index, string, error) {
	g := w.Git()
	if l != nil {
		g.Hold = l.File()
	}
	ix, err := Open(w, g, CommitIndex)
	if err != nil {
		return nil, "", err
	}
	tree, err := ix.StageFor(ctx, tip, tip)
	if err != nil {
		ix.Drop()
	}
	return ix, tree, err
}

// leftLinks returns the recorded commits of submodules that stayed behind. It returns nil for the snapshot
// index, because snapshots contain the files of submodules.
func (ix *Index) leftLinks() (submodule.Lefts, error) {
	if filepath.Base(ix.Kept) != CommitIndex {
		return nil, nil
	}
	return submodule.ReadLeft(ix.Worktree)
}

// countLeft sets the index entries of the submodules that stayed behind to their recorded commits. The
// worktree must have been staged in the index.
func (ix *Index) countLeft(ctx context.Context, left submodule.Lefts, links []string) error {
	var edits []object.Entry
	for _, path := range links {
		link, found := left[path]
		if found && submodule.Head(ix.Worktree, path) == link.Head {
			e := object.Entry{Mode: object.ModeSubmodule, Oid: link.As, Path: path}
			if link.As == "" {
				e.Mode = "0"
			}
			edits = append(edits, e)
		}
	}
	return ix.Put(ctx, edits)
}
