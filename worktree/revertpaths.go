package worktree

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A revert of named paths is mostly that of a few files. What it replaces can be saved without
// a look at the others: the snapshot before it has these paths only, see Snapshot.Only.

// A loneFile is a file that is restored without a look at others.
type loneFile struct {
	now, want git.Entry // of W and of the snapshot, with mode "0" if there is none
	seen      stamp     // of the file of now
	staged    string    // the file of want, outside W
}

// restoreAlone is restore for files that can be saved and written alone. The error is errLookAtAll
// if that is not known of one of them, or if W changes meanwhile: restore then does what is left.
func restoreAlone(ctx context.Context, w *repo.Worktree, session string, to git.Commit, paths []string) (before Snapshot, err error) {
	last, err := lastSnapshot(ctx, w.Repo, session)
	if err != nil || last.N == 0 {
		return before, errLookAtAll
	}
	files, err := loneFiles(ctx, w, last.Tree, to.Tree, paths)
	if err != nil {
		return before, err
	}
	ix, err := openIndex(w, w.Git(), "none") // for its directory, which coven removes if this one is killed
	if err != nil {
		return before, err
	}
	defer ix.drop()
	for i := range files {
		files[i].staged = filepath.Join(ix.dir, strconv.Itoa(i))
		if err := stageAlone(ctx, w, files[i], to.Tree); err != nil {
			return before, err
		}
	}
	if before, err = saveAlone(ctx, w, session, "before going back to "+firstLine(to.Message), last, files); err != nil {
		return before, err
	}
	failpoint.Point("restore.stored")
	root, err := os.OpenRoot(w.Path)
	if err != nil {
		return before, err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for _, f := range files {
		if err := f.replace(root); err != nil {
			return before, err
		}
		failpoint.Point("restore.file")
	}
	return before, w.CheckExists()
}

// loneFiles looks at the files that are restored from a tree.
func loneFiles(ctx context.Context, w *repo.Worktree, last, to string, paths []string) ([]loneFile, error) {
	left, err := readLeftLinks(w)
	if err != nil || len(left) > 0 || len(paths) > maxFew || w.Cone != nil || w.CheckExists() != nil {
		return nil, errLookAtAll
	}
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, err
	}
	var files []loneFile
	var doomed []string
	for _, p := range paths {
		f, err := loneFileOf(ctx, w, p, tip, last, to)
		if err != nil {
			return nil, err
		}
		if f.want.Mode == "0" {
			doomed = append(doomed, p)
		}
		files = append(files, f)
	}
	ignored, err := ignored(ctx, w, doomed)
	if err != nil || len(ignored) > 0 { // these stay
		return nil, errLookAtAll
	}
	return files, nil
}

// loneFileOf looks at a file that is restored from the last of these trees. None of them has anything
// else at its path.
func loneFileOf(ctx context.Context, w *repo.Worktree, p string, trees ...string) (f loneFile, err error) {
	if decidesAboutOthers(p) || slices.ContainsFunc(strings.Split(p, "/"), isGitDir) {
		return f, errLookAtAll
	}
	for _, tree := range trees {
		e, err := w.Repo.Git().At(ctx, tree, p)
		if err != nil || e.Path != "" && (e.Path != p || e.Mode == git.ModeSubmodule || e.Mode == git.ModeTree) {
			return f, errLookAtAll
		}
		if f.want = e; e.Path == "" {
			f.want = git.Entry{Mode: "0", Path: p}
		}
	}
	f.seen = stampOf(unix.AT_FDCWD, filepath.Join(w.Path, p))
	if f.now, err = fileEntry(ctx, w, p); err != nil {
		return f, err
	}
	if f.now.Mode == "0" && f.want.Mode == "0" {
		return f, errLookAtAll // there may be no such path
	}
	if f.want.Mode != "0" {
		sizes, err := w.Repo.Git().Sizes(ctx, []string{f.want.Oid})
		if err != nil || sizes[f.want.Oid] > maxAlone {
			return f, errLookAtAll
		}
	}
	return f, nil
}

// stageAlone writes the file of a tree outside W, with the modes that git gives files.
func stageAlone(ctx context.Context, w *repo.Worktree, f loneFile, tree string) error {
	if f.want.Mode == "0" {
		return nil
	}
	content, err := w.Repo.Git().File(ctx, tree, f.want.Path)
	if err != nil {
		return err
	}
	switch f.want.Mode {
	case "120000":
		return os.Symlink(string(content), f.staged)
	case "100755":
		return os.WriteFile(f.staged, content, 0o777)
	}
	return os.WriteFile(f.staged, content, 0o666)
}

// saveAlone saves files of W as a snapshot that has nothing else.
func saveAlone(ctx context.Context, w *repo.Worktree, session, note string, last Snapshot, files []loneFile) (Snapshot, error) {
	edits, only := make([]git.Entry, len(files)), make([]string, len(files))
	for i, f := range files {
		edits[i], only[i] = f.now, f.now.Path
	}
	tree, err := w.Repo.Git().EditTree(ctx, last.Tree, edits)
	if err != nil {
		return Snapshot{}, err
	}
	return appendPaths(ctx, w, session, last, Snapshot{Tree: tree, Note: note, Only: only})
}

// replace gives W the new file, or removes the old one, if that is still what was saved. At each
// instant, W has one of them.
func (f loneFile) replace(root *os.Root) error {
	if f.now == f.want {
		return nil
	}
	name, dir := path.Base(f.want.Path), path.Dir(f.want.Path)
	if dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	parent, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer parent.Close() //nolint:errcheck // it is only read
	if stampOf(int(parent.Fd()), name) != f.seen {
		return errLookAtAll
	}
	if f.want.Mode != "0" {
		err := unix.Renameat(unix.AT_FDCWD, f.staged, int(parent.Fd()), name)
		if errors.Is(err, unix.EXDEV) { // the git directory is on another file system
			return errLookAtAll
		}
		return err
	}
	if err := unix.Unlinkat(int(parent.Fd()), name, 0); err != nil {
		return err
	}
	for ; dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) { // like git: no empty directories stay
	}
	return nil
}

// decidesAboutOthers reports whether a file decides what is saved of other files.
func decidesAboutOthers(p string) bool {
	return slices.Contains([]string{".gitignore", ".gitattributes", ".gitmodules"}, path.Base(p))
}

// A stamp changes with a file. That of a file that does not exist is the zero value.
type stamp struct {
	ino, mode, size   int64
	modified, changed [2]int64
}

// stampOf returns the stamp of a file in an open directory.
func stampOf(dir int, name string) stamp {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return stamp{}
	}
	return stamp{
		ino: int64(st.Ino), mode: int64(st.Mode), size: st.Size,
		modified: [2]int64{st.Mtim.Sec, st.Mtim.Nsec}, changed: [2]int64{st.Ctim.Sec, st.Ctim.Nsec},
	}
}
