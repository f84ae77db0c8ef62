package worktree

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// reserved lists the paths whose content in a branch is always the target's:
// the tracker's file and the session records.
func reserved() []string { return []string{".beads", ".coven/sessions"} }

func isReserved(p string) bool {
	for _, dir := range reserved() {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// listing is git's comparison of W with an index.
type listing struct {
	stale     []string    // entries that differ from their file, or have none
	untracked []string    // files without an entry that are not ignored
	nested    []string    // repositories without an entry, no slash at the end
	entries   []string    // paths of all entries
	links     []string    // entries that name a commit of another repository
	skipped   []git.Entry // entries that are not in a sparse W
	vivid     []string    // those that are there now; they are stale, too
}

// clean reports whether W has what the index has, as far as the listing shows it: links would need
// a closer look.
func (l *listing) clean() bool {
	return len(l.stale)+len(l.untracked)+len(l.nested)+len(l.links) == 0
}

// Options of list.
const (
	withoutIgnored = "--exclude-standard"
	withIgnored    = "--" // ignored files are untracked ones, too
)

// list compares W with the index.
func (ix *index) list(ctx context.Context, option string) (l listing, err error) {
	fields, err := ix.git.Fields(ctx, "ls-files", "-z", "-t", "-s", "-c", "-m", "-d", "-o", option)
	if err != nil {
		return l, err
	}
	for _, field := range fields {
		if err := l.add(field); err != nil {
			return l, err
		}
	}
	l.vivid = presentPaths(ix.w, l.skipped)
	l.stale = append(l.stale, l.vivid...)
	return l, nil
}

// add reads "? path" or "TAG MODE OID STAGE\tpath".
func (l *listing) add(field string) error {
	if name, found := strings.CutPrefix(field, "? "); found {
		if dir, isDir := strings.CutSuffix(name, "/"); isDir {
			l.nested = append(l.nested, dir)
		} else {
			l.untracked = append(l.untracked, name)
		}
		return nil
	}
	meta, name, found := strings.Cut(field, "\t")
	words := strings.Fields(meta)
	if !found || len(words) != 4 {
		return fmt.Errorf("git printed an unknown entry %q", field)
	}
	if words[0] == "S" {
		l.skipped = append(l.skipped, git.Entry{Mode: words[1], Oid: words[2], Path: name})
		l.entries = append(l.entries, name)
		return nil
	}
	if words[0] != "H" {
		l.stale = append(l.stale, name) // maybe twice: modified and deleted
		return nil
	}
	l.entries = append(l.entries, name)
	if words[1] == git.ModeSubmodule {
		l.links = append(l.links, name)
	}
	return nil
}

// stage updates the index to the content of W: tracked files and untracked ones that
// are not ignored. Repositories inside W are added as plain files, except submodules
// in .gitmodules, of which the index has the commit: see leftLinks. If W does not exist
// before or after, the error is ErrNoWorktree.
func (ix *index) stage(ctx context.Context) (listing, error) {
	if err := ix.w.CheckExists(); err != nil {
		return listing{}, err
	}
	l, err := ix.stageAll(ctx)
	return l, ix.w.OrMissing(err)
}

func (ix *index) stageAll(ctx context.Context) (listing, error) {
	l, err := ix.list(ctx, withoutIgnored)
	if err != nil {
		return l, fmt.Errorf("list the files of %s: %w", ix.w.Path, err)
	}
	left, err := ix.leftLinks()
	if err != nil {
		return l, err
	}
	if err := ix.mark(ctx, unskipOption, l.vivid); err != nil {
		return l, err
	}
	paths := append(l.stale, l.untracked...)
	links := l.links
	repositories := repo.Without(l.nested, leftBehind(ix.w, left, l.nested))
	if len(links) > 0 {
		unknown, err := ix.unknownLinks(ctx, links)
		if err != nil {
			return l, err
		}
		paths, links = repo.Without(paths, unknown), repo.Without(links, unknown)
		repositories = append(repositories, unknown...)
	}
	inside, err := ix.filesInside(ctx, repositories)
	if err != nil {
		return l, err
	}
	if err := ix.take(ctx, append(paths, inside...)); err != nil {
		return l, fmt.Errorf("stage the files of %s: %w", ix.w.Path, err)
	}
	return l, ix.countLeft(ctx, left, links)
}

// unknownLinks returns the links that are not submodules and whose directory has
// files. `git add` of a repository inside W creates such links.
func (ix *index) unknownLinks(ctx context.Context, links []string) ([]string, error) {
	known, err := submodules(ctx, ix.w)
	if err != nil {
		return nil, err
	}
	var unknown []string
	for _, link := range links {
		entries, err := os.ReadDir(filepath.Join(ix.w.Path, link))
		if err == nil && len(entries) > 0 && !slices.Contains(known, link) {
			unknown = append(unknown, link)
		}
	}
	return unknown, nil
}

// filesInside lists the files in repositories inside W that neither the inner nor the
// outer ignore rules match.
func (ix *index) filesInside(ctx context.Context, repositories []string) ([]string, error) {
	var all []string
	for queue := repositories; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		g := ix.git
		g.WorkTree, g.Index = filepath.Join(ix.w.Path, dir), filepath.Join(ix.dir, "none")
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

func (ix *index) notIgnored(ctx context.Context, paths []string) ([]string, error) {
	ignored, err := ignoredBy(ctx, ix.git, paths)
	return repo.Without(paths, ignored), err
}

// ignoredBy returns the paths that the ignore rules in a repository's files match.
func ignoredBy(ctx context.Context, g git.Repo, paths []string) ([]string, error) {
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
	if err != nil && git.ExitCode(err) != 1 { // 1: none of them
		return nil, fmt.Errorf("ask for ignored files: %w", err)
	}
	found := git.Split(out)
	for i := range found {
		found[i] = strings.TrimPrefix(found[i], "./")
	}
	return found, nil
}
