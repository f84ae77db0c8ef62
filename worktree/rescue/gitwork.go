package rescue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
	"github.com/coven-run/coven/worktree/isolation"
)

// stagedDir is the directory of staged files in a rescue: stagedDir/STAGE/PATH.
const stagedDir = GitDirName + "/staged"

// GitWork is work that exists only in the worktree's git directory and would be lost with it.
type GitWork struct {
	// files are those of a merge, rebase or similar operation in progress, and files that coven has set
	// aside: path in the rescue -> absolute path.
	files map[string]string
	// staged are the index entries whose content is neither in the worktree nor on its branch, with their
	// paths in the rescue.
	staged []object.Entry
	// commits are those that neither the branch nor another ref of the repository reaches: of a detached
	// HEAD, of branches and the stash in the private common directory, and those named in files.
	commits []string
	// bases are the commits from which those start, and that a ref of the repository reaches.
	bases []string
}

// Empty reports whether there is no such work.
func (g GitWork) Empty() bool { return len(g.files)+len(g.staged)+len(g.commits) == 0 }

// FindGitWork finds work in the worktree's git directory that is neither in tree nor on the branch, and
// copies its objects into the repository. It only reads files there: git uses copies and objects.
func FindGitWork(ctx context.Context, w *repo.Worktree, tree string) (GitWork, error) {
	found := GitWork{files: map[string]string{}}
	if w.Admin == "" || !file.Exists(w.Admin) {
		return found, nil
	}
	if err := stateFiles(w, found.files); err != nil {
		return found, err
	}
	var err error
	if found.staged, err = stagedOnly(ctx, w, found.files, tree); err != nil {
		return found, err
	}
	named, err := namedCommits(ctx, w, found.files)
	if err != nil {
		return found, err
	}
	asked := slices.Clone(named)
	for _, e := range found.staged {
		asked = append(asked, e.Oid)
	}
	kinds, err := takeObjects(ctx, w, asked, found.files)
	if err != nil {
		return found, err
	}
	found.staged = slices.DeleteFunc(found.staged, func(e object.Entry) bool { return kinds[e.Oid] != "blob" })
	named = slices.DeleteFunc(named, func(oid string) bool { return kinds[oid] != "commit" && kinds[oid] != "tag" })
	found.commits, found.bases, err = unkept(ctx, w, named)
	return found, err
}

// stateFiles adds the files that exist only while an operation is in progress.
func stateFiles(w *repo.Worktree, files map[string]string) error {
	entries, err := os.ReadDir(w.Admin)
	if err != nil {
		return err
	}
	found := HiddenFiles{Renamed: files}
	for _, entry := range entries {
		from, as := filepath.Join(w.Admin, entry.Name()), path.Join(GitDirName, entry.Name())
		switch {
		case submodule.IsOrdinary(entry.Name()), isolation.IsFilterState(w, from):
		case entry.IsDir():
			if err := found.addBelow(from, as); err != nil {
				return err
			}
		case entry.Type().IsRegular(), entry.Type() == fs.ModeSymlink:
			files[as] = from
		}
	}
	return nil
}

var oidInText = lazyregexp.New(`\b([0-9a-f]{64}|[0-9a-f]{40})\b`)

// namedCommits returns the object IDs in the worktree's git directory, except those that a ref of the
// repository has and those that the task's branch, or a former tip of it that was rebased, is known to reach.
func namedCommits(ctx context.Context, w *repo.Worktree, files map[string]string) ([]string, error) {
	named, err := privateCommits(w)
	if err != nil {
		return nil, err
	}
	read := []string{filepath.Join(w.Admin, "HEAD"), isolation.PrivatePath(w, "logs", "refs", "stash")}
	for _, name := range files {
		read = append(read, name)
	}
	below, err := content.FilesBelow(filepath.Join(w.Admin, "refs"), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range below {
		read = append(read, filepath.Join(w.Admin, "refs", name))
	}
	for _, name := range read {
		text, err := readSmall(name)
		if err != nil {
			return nil, err
		}
		named = append(named, oidInText.FindAllString(text, -1)...)
	}
	slices.Sort(named)
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, err
	}
	reached := []string{tip}
	if rec, err := w.Repo.ReadRecord(w.Name); err == nil {
		reached = append(reached, rec.Rebased...)
	}
	named = slices.DeleteFunc(slices.Compact(named), func(oid string) bool {
		return strings.Trim(oid, "0") == "" || slices.ContainsFunc(reached, func(tip string) bool {
			return tip != "" && w.Repo.Git().KnownAncestor(ctx, oid, tip)
		})
	})
	if len(named) == 0 {
		return nil, nil // the usual case; running git takes as long as removing the worktree
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(named, func(oid string) bool {
		return slices.ContainsFunc(refs, func(ref ref.Ref) bool { return ref.Oid == oid && !removedWithWorktree(w, ref.Name) })
	}), nil
}

// readSmall reads a file that git would read, too. It returns "" unless name is a small regular file.
func readSmall(name string) (string, error) {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > object.MaxPackedRefs {
		return "", nil //nolint:nilerr // git would not read it
	}
	raw, err := file.Read(name, object.MaxPackedRefs)
	return string(raw), err
}

// privateCommits returns the object IDs of the refs in the private common directory that were not copied
// from the repository.
func privateCommits(w *repo.Worktree) ([]string, error) {
	text, err := readSmall(isolation.PrivatePath(w, "packed-refs"))
	if err != nil {
		return nil, err
	}
	copied, err := isolation.CopiedRefs(w)
	if err != nil {
		return nil, err
	}
	refs := object.ParsePackedRefs(text)
	loose, err := content.FilesBelow(isolation.PrivatePath(w, "refs"), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range loose {
		text, err := readSmall(isolation.PrivatePath(w, "refs", name))
		if err != nil {
			return nil, err
		}
		refs["refs/"+name] = strings.TrimSuffix(text, "\n")
	}
	var own []string
	for name, oid := range refs {
		if object.IsID(oid) && !copied[name+" "+oid] {
			own = append(own, oid)
		}
	}
	return own, nil
}

// removedWithWorktree reports whether a ref is removed with the worktree.
func removedWithWorktree(w *repo.Worktree, ref string) bool {
	return ref == names.HeadsPrefix+w.Branch || ref == isolation.IncomingRef(w) || strings.HasPrefix(ref, names.KeepPrefix+w.Name+"/") || strings.HasPrefix(ref, names.SnapshotRef(""))
}

// takeObjects copies objects that exist only in the private common directory into the repository, and
// returns the types of the existing objects. If git refuses them, it adds the private directory and the
// index to files.
func takeObjects(ctx context.Context, w *repo.Worktree, oids []string, files map[string]string) (map[string]string, error) {
	kinds, err := w.Repo.Git().Kinds(ctx, oids)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(oids, func(oid string) bool { return kinds[oid] != "" })
	if len(missing) == 0 || !file.Exists(isolation.PrivatePath(w, "objects")) {
		return kinds, nil
	}
	taken, err := isolation.TakePrivate(ctx, w, missing)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		files[GitDirName+"/index"] = filepath.Join(w.Admin, "index")
		return kinds, (&HiddenFiles{Renamed: files}).addBelow(isolation.PrivatePath(w), GitDirName+"/"+names.PrivateDir)
	}
	for oid, kind := range taken {
		kinds[oid] = kind
	}
	return kinds, nil
}

// unkept returns the commits that neither the task's branch nor a ref that outlasts the worktree reaches, and the commits
// from which these start.
func unkept(ctx context.Context, w *repo.Worktree, commits []string) (own, bases []string, err error) {
	if len(commits) == 0 {
		return nil, nil, nil
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, nil, err
	}
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, nil, err
	}
	asked := strings.Join(commits, "\n") + "\n"
	if tip != "" {
		asked += "^" + tip + "\n"
	}
	for _, ref := range refs {
		if !removedWithWorktree(w, ref.Name) {
			asked += "^" + ref.Oid + "\n"
		}
	}
	out, err := w.Repo.Git().Feed(ctx, []byte(asked), "rev-list", "--boundary", "--stdin")
	if err != nil {
		return nil, nil, fmt.Errorf("find commits that no ref keeps: %w", err)
	}
	only := map[string]bool{}
	for oid := range strings.FieldsSeq(string(out)) {
		if base, isBase := strings.CutPrefix(oid, "-"); isBase {
			bases = append(bases, base)
		} else {
			only[oid] = true
		}
	}
	return slices.DeleteFunc(commits, func(oid string) bool { return !only[oid] }), bases, nil
}

// ReservedDiffer reports whether the reserved files of two trees differ. Those of a commit are always the
// target's.
func ReservedDiffer(ctx context.Context, w *repo.Worktree, one, two string) (bool, error) {
	var entries [2][]object.Entry
	for i, tree := range []string{one, two} {
		var err error
		if entries[i], err = w.Repo.Git().Entries(ctx, tree, content.Reserved()...); err != nil {
			return false, err
		}
	}
	return !slices.Equal(entries[0], entries[1]), nil
}
