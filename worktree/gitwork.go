package worktree

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

	"github.com/coven-run/coven/internal/lazyregexp"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// stagedDir is where a rescue has what is staged in W: stagedDir/STAGE/PATH.
const stagedDir = rescuedGitDir + "/staged"

// gitWork is work that only W's own git directory has, and that goes away with it.
type gitWork struct {
	// files are those of a merge, a rebase and the like in progress, and what coven set aside:
	// path in the rescue -> absolute path.
	files map[string]string
	// staged are the entries of W's index whose content is neither in W nor in its branch, with
	// their paths in the rescue.
	staged []git.Entry
	// commits are those that neither the branch nor another ref of the repository keeps: of a HEAD
	// that has left its branch, of branches and the stash of the private common directory, and
	// those that files name.
	commits []string
}

// empty reports whether there is no such work.
func (g gitWork) empty() bool { return len(g.files)+len(g.staged)+len(g.commits) == 0 }

// findGitWork finds work in W's own git directory that neither tree nor the branch has, and brings its
// objects into the repository. It only reads files there: git runs with copies and with objects.
func findGitWork(ctx context.Context, w *repo.Worktree, tree string) (gitWork, error) {
	found := gitWork{files: map[string]string{}}
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
	found.staged = slices.DeleteFunc(found.staged, func(e git.Entry) bool { return kinds[e.Oid] != "blob" })
	named = slices.DeleteFunc(named, func(oid string) bool { return kinds[oid] != "commit" && kinds[oid] != "tag" })
	found.commits, err = unkept(ctx, w, named)
	return found, err
}

// stateFiles adds the files that are there only while something is in progress.
func stateFiles(w *repo.Worktree, files map[string]string) error {
	entries, err := os.ReadDir(w.Admin)
	if err != nil {
		return err
	}
	found := hiddenFiles{renamed: files}
	for _, entry := range entries {
		from, as := filepath.Join(w.Admin, entry.Name()), path.Join(rescuedGitDir, entry.Name())
		switch {
		case submodule.IsOrdinary(entry.Name()):
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

// namedCommits returns the object ids that W's git directory names, without those that a ref of the
// repository has and those that the task's branch is known to reach.
func namedCommits(ctx context.Context, w *repo.Worktree, files map[string]string) ([]string, error) {
	named, err := privateCommits(w)
	if err != nil {
		return nil, err
	}
	read := []string{filepath.Join(w.Admin, "HEAD"), privatePath(w, "logs", "refs", "stash")}
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
	named = slices.DeleteFunc(slices.Compact(named), func(oid string) bool {
		return strings.Trim(oid, "0") == "" || tip != "" && w.Repo.Git().KnownAncestor(ctx, oid, tip)
	})
	if len(named) == 0 {
		return nil, nil // mostly: to ask git takes as long as to remove the worktree
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(named, func(oid string) bool {
		return slices.ContainsFunc(refs, func(ref git.Ref) bool { return ref.Oid == oid && !goesWith(w, ref.Name) })
	}), nil
}

// readSmall reads a file that git would read, too: what is none is empty.
func readSmall(name string) (string, error) {
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > repo.MaxPackedRefs {
		return "", nil //nolint:nilerr // nothing that git would read
	}
	raw, err := file.Read(name, repo.MaxPackedRefs)
	return string(raw), err
}

// privateCommits returns the object ids of the refs of the private common directory that were not
// copied from the repository.
func privateCommits(w *repo.Worktree) ([]string, error) {
	text, err := readSmall(privatePath(w, "packed-refs"))
	if err != nil {
		return nil, err
	}
	copied, err := copiedRefs(w)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(text) {
		oid, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = oid
	}
	loose, err := content.FilesBelow(privatePath(w, "refs"), ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range loose {
		text, err := readSmall(privatePath(w, "refs", name))
		if err != nil {
			return nil, err
		}
		refs["refs/"+name] = strings.TrimSuffix(text, "\n")
	}
	var own []string
	for name, oid := range refs {
		if repo.OidRE.MatchString(oid) && !copied[name+" "+oid] {
			own = append(own, oid)
		}
	}
	return own, nil
}

// goesWith reports whether a ref does not outlast the worktree.
func goesWith(w *repo.Worktree, ref string) bool {
	return ref == repo.HeadsPrefix+w.Branch || ref == incomingRef(w) || strings.HasPrefix(ref, repo.KeepPrefix+w.Name+"/") || strings.HasPrefix(ref, repo.SnapshotRef(""))
}

// takeObjects takes objects that only the private common directory has into the repository, and
// returns the kinds of those that exist. If git refuses them, the private directory and the index
// are added to files.
func takeObjects(ctx context.Context, w *repo.Worktree, oids []string, files map[string]string) (map[string]string, error) {
	kinds, err := kindsOf(ctx, w.Repo.Git(), oids)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(oids, func(oid string) bool { return kinds[oid] != "" })
	if len(missing) == 0 || !file.Exists(privatePath(w, "objects")) {
		return kinds, nil
	}
	taken, err := takePrivate(ctx, w, missing)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		files[rescuedGitDir+"/index"] = filepath.Join(w.Admin, "index")
		return kinds, (&hiddenFiles{renamed: files}).addBelow(privatePath(w), rescuedGitDir+"/"+repo.PrivateDir)
	}
	for oid, kind := range taken {
		kinds[oid] = kind
	}
	return kinds, nil
}

// takePrivate copies objects of the private common directory, with what they need.
func takePrivate(ctx context.Context, w *repo.Worktree, oids []string) (map[string]string, error) {
	if err := errors.Join(regainOwn(w), checkPrivateObjects(w)); err != nil {
		return nil, err
	}
	g, err := w.Repo.PlainGit()
	if err != nil {
		return nil, err
	}
	g.ObjectDir = privatePath(w, "objects")
	kinds, err := kindsOf(ctx, g, oids)
	if err != nil || len(kinds) == 0 {
		return kinds, err
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	var wanted strings.Builder
	for oid := range kinds {
		wanted.WriteString(oid + "\n")
	}
	for _, ref := range refs {
		wanted.WriteString("^" + ref.Oid + "\n")
	}
	pack, err := g.Feed(ctx, []byte(wanted.String()), "pack-objects", "--quiet", "--revs", "--local", "--stdout")
	if err != nil {
		return nil, err
	}
	_, err = w.Repo.Git().Feed(ctx, pack, "unpack-objects", "-q", "--strict")
	return kinds, err
}

// kindsOf returns the kinds of the objects that exist.
func kindsOf(ctx context.Context, g git.Repo, oids []string) (map[string]string, error) {
	kinds := map[string]string{}
	if len(oids) == 0 {
		return kinds, nil
	}
	out, err := g.Feed(ctx, []byte(strings.Join(oids, "\n")+"\n"), "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if oid, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind != "missing" {
			kinds[oid] = kind
		}
	}
	return kinds, nil
}

// unkept returns those commits that neither the task's branch reaches nor a ref that outlasts the
// worktree.
func unkept(ctx context.Context, w *repo.Worktree, commits []string) ([]string, error) {
	if len(commits) == 0 {
		return nil, nil
	}
	refs, err := w.Repo.Git().Refs(ctx, "refs/")
	if err != nil {
		return nil, err
	}
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, err
	}
	asked := strings.Join(commits, "\n") + "\n"
	if tip != "" {
		asked += "^" + tip + "\n"
	}
	for _, ref := range refs {
		if !goesWith(w, ref.Name) {
			asked += "^" + ref.Oid + "\n"
		}
	}
	out, err := w.Repo.Git().Feed(ctx, []byte(asked), "rev-list", "--stdin")
	if err != nil {
		return nil, fmt.Errorf("find commits that no ref keeps: %w", err)
	}
	only := map[string]bool{}
	for oid := range strings.FieldsSeq(string(out)) {
		only[oid] = true
	}
	return slices.DeleteFunc(commits, func(oid string) bool { return !only[oid] }), nil
}

// takeWork adds what gitWork found.
func takeWork(ctx context.Context, ix *content.Index, own gitWork) error {
	return errors.Join(takeAs(ctx, ix, own.files), ix.Put(ctx, own.staged))
}

// reservedDiffer reports whether the reserved files of two trees differ: those of a commit are
// the target's, whatever W has.
func reservedDiffer(ctx context.Context, w *repo.Worktree, one, two string) (bool, error) {
	var entries [2][]git.Entry
	for i, tree := range []string{one, two} {
		var err error
		if entries[i], err = w.Repo.Git().Entries(ctx, tree, content.Reserved()...); err != nil {
			return false, err
		}
	}
	return !slices.Equal(entries[0], entries[1]), nil
}
