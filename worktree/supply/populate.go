package supply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// populateSubmodules checks out the worktree's submodules at their commits in start, if the main checkout
// has these commits: nothing is fetched. It returns warnings about the other submodules, which stay empty.
// Existing files in a directory are not changed.
func populateSubmodules(ctx context.Context, w *repo.Worktree, start string) (warnings []string, err error) {
	if !w.Repo.Submodules {
		return nil, nil
	}
	names, err := submodule.Names(ctx, w)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	entries, err := w.Repo.Git().Entries(ctx, start)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, known := names[e.Path]
		if e.Mode != object.ModeSubmodule || !known || w.Cone.Skips(e.Path) {
			continue
		}
		if err := populateOne(ctx, w, name, e); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			warnings = append(warnings, fmt.Sprintf("submodule %s stays empty: %v", e.Path, err))
		}
		failpoint.Point("add.populated")
	}
	return warnings, nil
}

// populateOne checks out one submodule. If it fails, the directory is unchanged.
func populateOne(ctx context.Context, w *repo.Worktree, name string, link object.Entry) error {
	top := filepath.Join(w.Path, filepath.FromSlash(link.Path))
	files, err := os.ReadDir(top)
	if info, statErr := os.Lstat(top); statErr != nil || !info.IsDir() || file.BeyondLink(w.Path, link.Path) {
		return errors.New("it is not a directory")
	}
	if err != nil {
		return err
	}
	from, err := moduleDir(ctx, w.Repo, name, link.Oid)
	if err != nil {
		return err
	}
	dir := filepath.Join(w.Admin, submodule.ModulesDir, filepath.FromSlash(name))
	args := []string{"read-tree", "--reset", "-u", link.Oid}
	if len(files) > 0 {
		args = []string{"read-tree", "--reset", link.Oid}
	}
	err = makeModule(ctx, dir, from, top, link.Oid)
	if err == nil {
		g := w.Git()
		g.Dir, g.WorkTree, g.Store = dir, top, nil
		g.Env = append(g.Env, noLazyFetch)
		err = g.Run(ctx, args...)
	}
	if err == nil {
		return nil
	}
	undone := []error{file.RemoveAll(dir), os.RemoveAll(filepath.Join(top, ".git"))}
	if len(files) == 0 {
		undone = append(undone, file.RemoveAll(top), os.Mkdir(top, 0o755))
	}
	return errors.Join(append([]error{err}, undone...)...)
}

// noLazyFetch prevents git from fetching objects that a partial clone lacks.
const noLazyFetch = "GIT_NO_LAZY_FETCH=1"

// moduleDir returns the git directory of a submodule in the main checkout, if it has the commit oid.
func moduleDir(ctx context.Context, r *repo.Repo, name, oid string) (string, error) {
	notThere := errors.New("the main checkout does not have it")
	if !filepath.IsLocal(name) {
		return "", notThere
	}
	top, err := filepath.EvalSymlinks(submodule.ModulesOf(r))
	if err != nil {
		return "", notThere
	}
	dir := filepath.Join(submodule.ModulesOf(r), filepath.FromSlash(name))
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != filepath.Join(top, filepath.FromSlash(name)) {
		return "", notThere
	}
	g := git.Repo{Dir: dir, Env: []string{noLazyFetch}}
	if has, err := g.Has(ctx, oid, "commit"); err != nil || !has {
		return "", errors.Join(fmt.Errorf("the main checkout does not have its commit %.12s: fetch it there", oid), err)
	}
	return dir, nil
}

// makeModule creates the git directory of a submodule, which borrows the objects of another one, and links
// the submodule's checkout at top to it.
func makeModule(ctx context.Context, dir, from, top, head string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	g := git.Repo{Dir: from, Env: []string{noLazyFetch}}
	config, err := moduleConfig(ctx, g, top)
	if err != nil {
		return err
	}
	refs, err := g.Refs(ctx, "refs/remotes/", "refs/tags/")
	if err != nil {
		return err
	}
	var packed strings.Builder
	for _, ref := range refs {
		if path.Base(ref.Name) != "HEAD" { // it would not follow its branch
			packed.WriteString(ref.Oid + " " + ref.Name + "\n")
		}
	}
	for name, text := range map[string]string{
		"HEAD": head + "\n", "config": config, "packed-refs": packed.String(),
		"objects/info/alternates": filepath.Join(from, "objects") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(
		file.CopyIfExists(filepath.Join(from, "shallow"), filepath.Join(dir, "shallow")),
		os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: "+dir+"\n"), 0o644))
}

// moduleKeys matches the settings that the git directory of a submodule inherits: its remotes, the format
// of its objects, and git's findings about the file system.
const moduleKeys = `^(remote\..*\.(url|pushurl|fetch)|core\.(repositoryformatversion|filemode|ignorecase|symlinks|precomposeunicode)|extensions\.objectformat)$`

// moduleConfig returns the configuration of a submodule whose checkout is at top.
func moduleConfig(ctx context.Context, from git.Repo, top string) (string, error) {
	fields, err := from.Fields(ctx, "config", "-z", "--file", filepath.Join(from.Dir, "config"), "--get-regexp", moduleKeys)
	if err != nil && git.ExitCode(err) != 1 {
		return "", err
	}
	return git.ConfigText(append(fields, "core.worktree\n"+top)), nil
}

// SubmodulesEdited reports whether the worktree's submodules contain files that differ from their commits.
// raw is the tree of a snapshot of the worktree.
func SubmodulesEdited(ctx context.Context, w *repo.Worktree, tree, raw string) (bool, error) {
	links, err := w.Repo.Git().Entries(ctx, tree)
	if err != nil {
		return false, err
	}
	for _, link := range links {
		if link.Mode != object.ModeSubmodule {
			continue
		}
		files, err := w.Repo.Git().Entries(ctx, raw, link.Path)
		if err != nil {
			return false, err
		}
		if edited, err := submoduleEdited(ctx, w, link.Path, files); err != nil || edited {
			return edited, err
		}
	}
	return false, nil
}

func submoduleEdited(ctx context.Context, w *repo.Worktree, at string, files []object.Entry) (bool, error) {
	if len(files) == 0 {
		return false, nil
	}
	head := submodule.Head(w, at)
	dir, ok := submodule.Dir(filepath.Join(w.Path, at))
	if head == "" || !ok {
		return true, nil
	}
	from, ok := submodule.Lender(w, dir)
	if !ok {
		return true, nil
	}
	g := git.Repo{Dir: from, Env: []string{noLazyFetch}}
	if has, err := g.Has(ctx, head, "commit"); err != nil || !has {
		return true, err
	}
	entries, err := g.Entries(ctx, head)
	if err != nil {
		return true, err
	}
	has := map[object.Entry]bool{}
	for _, e := range entries {
		e.Path = path.Join(at, e.Path)
		has[e] = true
	}
	return slices.ContainsFunc(files, func(e object.Entry) bool { return !has[e] }), nil
}
