package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// SnapshotPaths saves W like Snapshot, for a caller who knows that since the last snapshot of the
// session only these files can have changed. It looks at nothing else, unless that might
// make a difference: then it is Snapshot. Paths are relative to W, with slashes.
func SnapshotPaths(ctx context.Context, w *repo.Worktree, session, note string, paths []string) (Snapshot, error) {
	last, err := lastSnapshot(ctx, w.Repo, session)
	if err == nil && last.N > 0 && last.Only == nil && w.Cone == nil && w.CheckExists() == nil {
		if s, err := snapshotPaths(ctx, w, session, note, last, paths); err == nil {
			return s, nil
		}
	}
	return TakeSnapshot(ctx, w, session, note)
}

func snapshotPaths(ctx context.Context, w *repo.Worktree, session, note string, last Snapshot, paths []string) (Snapshot, error) {
	edits, err := editsOf(ctx, w, last.Tree, paths)
	if err != nil {
		return last, err
	}
	tree := last.Tree
	if len(edits) > 0 {
		if tree, err = w.Repo.Git().EditTree(ctx, tree, edits); err != nil {
			return last, err
		}
	}
	return appendPaths(ctx, w, session, last, Snapshot{Tree: tree, Note: note})
}

// appendPaths appends a snapshot to the last one, which it returns if nothing has changed. It is
// refused if there is another one meanwhile.
func appendPaths(ctx context.Context, w *repo.Worktree, session string, last, next Snapshot) (Snapshot, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return last, err
	}
	links, err := ownLinks(ctx, w, tip)
	next.N, next.Tip, next.Time, next.links = last.N+1, tip, time.Now(), links
	if err != nil || last.same(next) {
		return last, err
	}
	return appendSnapshot(ctx, w.Repo, session, next, last)
}

// errLookAtAll means that a file cannot be saved alone.
var errLookAtAll = errors.New("only a look at all files shows what a snapshot has")

// editsOf returns how the files make the tree of the last snapshot that of the next.
func editsOf(ctx context.Context, w *repo.Worktree, last string, paths []string) ([]git.Entry, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	have, err := w.Repo.Git().Entries(ctx, last, paths...)
	if err != nil {
		return nil, err
	}
	var edits []git.Entry
	var created []string
	for _, p := range paths {
		if decidesAboutOthers(p) {
			return nil, errLookAtAll
		}
		now, err := fileEntry(ctx, w, p)
		if err != nil {
			return nil, err
		}
		under := slices.ContainsFunc(have, func(e git.Entry) bool { return strings.HasPrefix(e.Path, p+"/") })
		i := slices.IndexFunc(have, func(e git.Entry) bool { return e.Path == p })
		switch {
		case under || i >= 0 && have[i].Mode == git.ModeSubmodule:
			return nil, errLookAtAll
		case i < 0 && now.Mode == "0" || i >= 0 && have[i] == now:
			continue
		case i < 0:
			created = append(created, p)
		}
		edits = append(edits, now)
	}
	ignored, err := ignored(ctx, w, created)
	return slices.DeleteFunc(edits, func(e git.Entry) bool { return slices.Contains(ignored, e.Path) }), err
}

// maxAlone is the size, in bytes, of a file that is saved alone.
const maxAlone = 8 << 20

// fileEntry stores a file of W, and returns its entry, with mode "0" if there is none.
func fileEntry(ctx context.Context, w *repo.Worktree, p string) (git.Entry, error) {
	gone := git.Entry{Mode: "0", Path: p}
	dirs := []string{}
	for dir := path.Dir(p); dir != "." && dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	if !filepath.IsLocal(p) || path.Clean(p) != p || beyondLink(w.Path, p) || convertsPath(ctx, w, dirs) {
		return gone, errLookAtAll
	}
	for _, dir := range dirs {
		if file.Exists(filepath.Join(w.Path, dir, ".git")) {
			return gone, errLookAtAll
		}
	}
	file := filepath.Join(w.Path, p)
	info, err := os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return gone, nil
	}
	if err != nil {
		return gone, err
	}
	mode, content, err := contentOf(w, p, info)
	if err != nil {
		return gone, err
	}
	oid, err := w.Repo.Git().Blob(ctx, content)
	return git.Entry{Mode: mode, Oid: oid, Path: p}, err
}

// contentOf returns what git stores of a file.
func contentOf(w *repo.Worktree, p string, info fs.FileInfo) (mode string, content []byte, err error) {
	switch kind := info.Mode().Type(); {
	case kind == fs.ModeSymlink:
		to, err := os.Readlink(filepath.Join(w.Path, p))
		return "120000", []byte(to), err
	case !kind.IsRegular():
		return "", nil, errLookAtAll
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	content, err = regularfile.ReadIn(w.Path, p, maxAlone)
	return mode, content, err
}

// convertsPath reports whether git may store other bytes or modes in a snapshot than files in these
// directories of W have.
func convertsPath(ctx context.Context, w *repo.Worktree, dirs []string) bool {
	unusual := func(s git.Setting) bool {
		usual := map[string]string{"core.filemode": "true", "core.symlinks": "true"}
		return s.Value != usual[s.Key]
	}
	settings, err := w.Repo.Git().Configured(ctx, `^core\.(filemode|symlinks|ignorecase|precomposeunicode)$`, false)
	if err != nil || slices.ContainsFunc(settings, unusual) {
		return true
	}
	settings, err = w.Repo.Git().Configured(ctx, `^(filter\..*|core\.attributesfile)$`, false)
	if err != nil || len(settings) == 0 {
		return err != nil
	}
	files := attributesFiles(w.Repo.GitDir)
	for _, dir := range append(dirs, ".") {
		files = append(files, filepath.Join(w.Path, dir, ".gitattributes"))
	}
	return slices.ContainsFunc(files, func(file string) bool { return namesFilter(file) }) ||
		slices.ContainsFunc(settings, func(s git.Setting) bool { return s.Key == "core.attributesfile" })
}

// namesFilter reports whether a file of attributes may give a file a filter.
func namesFilter(file string) bool {
	content, err := regularfile.Read(file, maxAlone)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || strings.Contains(string(content), "filter")
}

// ignored returns the paths that the ignore rules in W match.
func ignored(ctx context.Context, w *repo.Worktree, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	g, err := rawGit(w)
	if err != nil {
		return nil, err
	}
	return ignoredBy(ctx, g, paths)
}
