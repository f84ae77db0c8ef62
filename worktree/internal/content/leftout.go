package content

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// LeftOut is a new path that does not become part of a task's change, although git does not ignore it: a link out of the
// repository, dependencies or build output, or something that set-up made. It stays in the worktree.
type LeftOut struct {
	Path   string // a file, a link or a directory
	Files  int    // in it, at least 1
	Reason string // empty for what set-up made
}

// String describes the path for people.
func (o LeftOut) String() string {
	if o.Files > 1 {
		return fmt.Sprintf("%s (%s, %d files)", printable(o.Path), printable(o.Reason), o.Files)
	}
	return fmt.Sprintf("%s (%s)", printable(o.Path), printable(o.Reason))
}

// printable quotes a text with control characters, which names of files may contain.
func printable(text string) string {
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// Exceptions are the paths of a worktree that are left out, or are not left out, for reasons of their own.
type Exceptions struct {
	Setup []string `json:"setup,omitempty"` // files and directories that set-up made
	Links []string `json:"links,omitempty"` // directories that show those of the main checkout
	Allow []string `json:"allow,omitempty"` // globs of paths that are part of the change regardless of their names and targets
}

func exceptionsPath(w *repo.Worktree) string { return w.StatePath("leftout.json") }

// ReadExceptions reads the exceptions of a worktree.
func ReadExceptions(w *repo.Worktree) (Exceptions, error) {
	var e Exceptions
	err := file.ReadJSON(exceptionsPath(w), &e)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("read the exceptions of %s: %w", w.Path, err)
	}
	return e, nil
}

// WriteExceptions replaces the exceptions of a worktree.
func WriteExceptions(w *repo.Worktree, e Exceptions) error {
	if err := file.WriteJSON(exceptionsPath(w), e); err != nil {
		return fmt.Errorf("write the exceptions of %s: %w", w.Path, err)
	}
	return nil
}

// leaveOut moves the new paths that are left out of a change from Untracked and Nested to LeftOut.
func (ix *Index) leaveOut(ctx context.Context, l *Listing) error {
	if len(l.Untracked)+len(l.Nested) == 0 {
		return nil
	}
	s, err := newSieve(ix.Worktree, l.entries)
	if err != nil {
		return err
	}
	found := map[string]*LeftOut{}
	leave := func(p string, out LeftOut) {
		if found[out.Path] == nil {
			found[out.Path] = &out
		}
		found[out.Path].Files++
		l.LeftFiles = append(l.LeftFiles, p)
	}
	l.Nested = slices.DeleteFunc(l.Nested, func(p string) bool {
		out, ok := s.reason(p + "/")
		if ok {
			leave(p+"/", out)
		}
		return ok
	})
	l.Untracked = slices.DeleteFunc(l.Untracked, func(p string) bool {
		out, ok := s.reason(p)
		if ok {
			leave(p, out)
		}
		return ok
	})
	if filepath.Base(ix.Kept) != SnapshotIndex { // a snapshot has links, so that an agent can get them back
		links, err := s.links(ctx, ix, l.Untracked)
		if err != nil {
			return err
		}
		l.Untracked = slices.DeleteFunc(l.Untracked, func(p string) bool {
			reason, ok := links[p]
			if ok {
				leave(p, LeftOut{Path: p, Reason: reason})
			}
			return ok
		})
	}
	for _, out := range found {
		l.LeftOut = append(l.LeftOut, *out)
	}
	slices.SortFunc(l.LeftOut, func(a, b LeftOut) int { return cmp.Compare(a.Path, b.Path) })
	return nil
}

// DropLeftOut removes the paths from the index that an agent has committed and that would have been left out. changes are
// those from the tree before to the index, and targets are those of the added links.
func (ix *Index) DropLeftOut(ctx context.Context, before string, changes []object.Change, targets map[string]string) ([]LeftOut, error) {
	s, err := newSieve(ix.Worktree, nil)
	if err != nil {
		return nil, err
	}
	left, err := s.committed(ctx, ix, changes, targets)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	entries, err := ix.Worktree.Repo.Git().Entries(ctx, before)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		s.track(e.Path)
	}
	if left, err = s.committed(ctx, ix, changes, targets); err != nil {
		return nil, err
	}
	var edits []object.Entry
	all := map[string]LeftOut{}
	for p, out := range left {
		edits = append(edits, object.Entry{Mode: "0", Path: p})
		out.Files += all[out.Path].Files
		all[out.Path] = out
	}
	return slices.Collect(maps.Values(all)), ix.Put(ctx, edits)
}

// committed returns the added paths that are left out, each with the path that is the reason.
func (s *sieve) committed(ctx context.Context, ix *Index, changes []object.Change, targets map[string]string) (map[string]LeftOut, error) {
	ignored, err := s.linksInPlaceOfDirs(ctx, ix, targets)
	if err != nil {
		return nil, err
	}
	left := map[string]LeftOut{}
	for _, change := range changes {
		p := change.Path
		if change.Status != 'A' || IsReserved(p) {
			continue
		}
		out, ok := s.reason(p)
		if target, isLink := targets[p]; !ok && isLink && !s.allows(p) {
			if out = s.linkReason(p, target, ignored); out.Reason != "" {
				ok = true
			}
		}
		if ok {
			out.Files = 1
			left[p] = out
		}
	}
	return left, nil
}

// A sieve separates the paths that are left out of a change from the others.
type sieve struct {
	w *repo.Worktree
	Exceptions
	tracked map[string]bool // the paths of files that are tracked, and of the directories with such files
}

func newSieve(w *repo.Worktree, tracked []string) (*sieve, error) {
	e, err := ReadExceptions(w)
	s := &sieve{w: w, Exceptions: e, tracked: map[string]bool{}}
	for _, p := range tracked {
		s.track(p)
	}
	return s, err
}

// track records that a file is tracked. It ignores allowed files, because files beside them may be left out.
func (s *sieve) track(p string) {
	if s.allows(p) {
		return
	}
	for ; p != "." && !s.tracked[p]; p = path.Dir(p) {
		s.tracked[p] = true
	}
}

// allows reports whether a path is expressly part of the change.
func (s *sieve) allows(p string) bool { return IsAllowed(s.Allow, p) }

// IsAllowed reports whether one of the globs matches a path or a directory above it.
func IsAllowed(globs []string, p string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		for at := p; at != "."; at = path.Dir(at) {
			if match, _ := doublestar.Match(glob, at); match { // the configuration has checked it
				return true
			}
		}
		return false
	})
}

// reason returns the reason for leaving out a file by its path: it is, or is in, a directory of dependencies or
// build output that was not tracked before. The path of a repository ends with a slash.
func (s *sieve) reason(p string) (LeftOut, bool) {
	for at := path.Clean(p); at != "."; at = path.Dir(at) {
		if slices.Contains(s.Setup, at) || slices.Contains(s.Links, at) {
			return LeftOut{Path: at}, true
		}
	}
	if s.allows(path.Clean(p)) {
		return LeftOut{}, false
	}
	for end := range len(p) + 1 {
		if end < len(p) && p[end] != '/' {
			continue
		}
		at := p[:end]
		if reason := s.known(at, end < len(p)); at != "" && reason != "" && !s.tracked[at] {
			return LeftOut{Path: at, Reason: reason}, true
		}
	}
	return LeftOut{}, false
}

// known returns the reason for leaving out a directory, or a file, with a known name.
func (s *sieve) known(p string, isDir bool) string {
	name := path.Base(p)
	switch name {
	case ".DS_Store", "Thumbs.db", ".coverage":
		return "a file that the system or a tool makes"
	}
	if strings.HasSuffix(name, ".pyc") && !isDir {
		return "compiled Python"
	}
	switch name {
	case "node_modules", "bower_components", ".venv", ".eggs", ".terraform", ".bundle":
		return "dependencies"
	}
	if !isDir {
		return ""
	}
	switch name {
	case "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".ipynb_checkpoints", ".sass-cache",
		".parcel-cache", ".turbo", ".gradle", ".direnv", ".dart_tool":
		return "a cache"
	case ".next", ".nuxt", ".svelte-kit", ".nyc_output":
		return "build output"
	case "venv", "env":
		if file.Exists(filepath.Join(s.w.Path, p, "pyvenv.cfg")) {
			return "dependencies"
		}
	case "target", "dist", "coverage", "htmlcov": // also names of directories with sources
		if path.Dir(p) == "." || s.isBesideManifest(p) {
			return "build output"
		}
	}
	if strings.HasSuffix(name, ".egg-info") {
		return "build output"
	}
	return ""
}

// isBesideManifest reports whether the directory that contains a path is that of a package.
func (s *sieve) isBesideManifest(p string) bool {
	return slices.ContainsFunc([]string{
		"package.json", "pyproject.toml", "setup.py", "setup.cfg", "Cargo.toml", "pom.xml", "build.gradle", "build.gradle.kts", "build.sbt",
	}, func(name string) bool { return file.Exists(filepath.Join(s.w.Path, path.Dir(p), name)) })
}

// links returns the symbolic links among untracked files that are left out, each with the reason.
func (s *sieve) links(ctx context.Context, ix *Index, untracked []string) (map[string]string, error) {
	targets := map[string]string{}
	for _, p := range untracked {
		full := filepath.Join(s.w.Path, p)
		if info, err := os.Lstat(full); err != nil || info.Mode()&fs.ModeSymlink == 0 || s.allows(p) {
			continue
		}
		if target, err := os.Readlink(full); err == nil {
			targets[p] = target
		}
	}
	ignored, err := s.linksInPlaceOfDirs(ctx, ix, targets)
	reasons := map[string]string{}
	for p, target := range targets {
		if out := s.linkReason(p, target, ignored); out.Reason != "" {
			reasons[p] = out.Reason
		}
	}
	return reasons, err
}

// linkReason returns the reason for leaving out a symbolic link, if there is one. ignored is the result of
// linksInPlaceOfDirs.
func (s *sieve) linkReason(p, target string, ignored map[string]bool) LeftOut {
	reason := s.leavesTree(p, target)
	if reason == "" && ignored[p] {
		reason = "a link, and git ignores a directory of this name"
	}
	return LeftOut{Path: p, Reason: reason}
}

// leavesTree returns the reason for leaving out a symbolic link by its target, or "".
func (s *sieve) leavesTree(p, target string) string {
	if path.IsAbs(target) {
		return "a link to " + target
	}
	if !filepath.IsLocal(path.Join(path.Dir(p), target)) || s.leadsOut(p, target) {
		return "a link out of the repository, to " + target
	}
	return ""
}

// leadsOut reports whether the target of a link leads out of the worktree because a part of it before .. is itself a link.
func (s *sieve) leadsOut(p, target string) bool {
	if !strings.Contains(target, "/..") {
		return false
	}
	top, err := filepath.EvalSymlinks(s.w.Path)
	if err != nil {
		return false
	}
	at := s.w.Path + "/" + path.Dir(p) + "/" + target // not cleaned: the parts are resolved one after the other
	real, err := filepath.EvalSymlinks(at)
	for err != nil && len(at) > len(s.w.Path) { // the end of it does not exist
		at = at[:strings.LastIndexByte(at, '/')]
		real, err = filepath.EvalSymlinks(at)
	}
	return err == nil && !strings.HasPrefix(real+"/", top+"/")
}

// linksInPlaceOfDirs returns the links whose names git would ignore if they were directories: node_modules/ does not match
// a link. It asks git about a tree that has such directories, and the same ignore rules.
func (s *sieve) linksInPlaceOfDirs(ctx context.Context, ix *Index, targets map[string]string) (map[string]bool, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	top := filepath.Join(ix.Dir, "directories")
	defer os.RemoveAll(top) //nolint:errcheck // Drop removes the rest
	var names []string
	copied := map[string]bool{}
	for p := range targets {
		if err := os.MkdirAll(filepath.Join(top, p), 0o700); err != nil {
			return nil, fmt.Errorf("compare links with ignore rules: %w", err)
		}
		for dir := path.Dir(p); !copied[dir]; dir = path.Dir(dir) {
			copied[dir] = true
			rules, err := file.Read(filepath.Join(s.w.Path, dir, ".gitignore"), maxIgnoreFile)
			if err != nil {
				continue // git, too, reads only regular files
			}
			if err := os.WriteFile(filepath.Join(top, dir, ".gitignore"), rules, 0o600); err != nil {
				return nil, fmt.Errorf("compare links with ignore rules: %w", err)
			}
		}
		names = append(names, p)
	}
	g := ix.Git
	g.WorkTree, g.Index = top, filepath.Join(ix.Dir, "none")
	found, err := IgnoredBy(ctx, g, names)
	ignored := map[string]bool{}
	for _, p := range found {
		ignored[p] = true
	}
	return ignored, err
}

// maxIgnoreFile limits the size of an ignore file, in bytes. git has the same limit.
const maxIgnoreFile = 100 << 20

// ExcludeUntracked leaves all present untracked paths of a worktree out of its change. It returns them. An untracked
// directory stands for the files in it.
func ExcludeUntracked(ctx context.Context, w *repo.Worktree) ([]string, error) {
	e, err := ReadExceptions(w)
	if err != nil {
		return nil, err
	}
	e.Setup = nil
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	ix, err := Open(w, w.Git(), "none")
	if err != nil {
		return nil, err
	}
	defer ix.Drop()
	if err := ix.Git.Run(ctx, "read-tree", tip); err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", w.Path, err)
	}
	fields, err := ix.Git.Fields(ctx, "ls-files", "-z", "-o", WithoutIgnored, "--directory", "--no-empty-directory")
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", w.Path, err)
	}
	for _, name := range fields {
		if name = strings.TrimSuffix(name, "/"); !IsReserved(name) && !slices.Contains(e.Links, name) {
			e.Setup = append(e.Setup, name)
		}
	}
	return e.Setup, WriteExceptions(w, e)
}
