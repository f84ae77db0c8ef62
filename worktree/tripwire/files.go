package tripwire

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// WatchName is the name of the directory below tasks that contains the private index of the main checkout.
const WatchName = ".checkout"

// watchIndex is the name of the private index of a checkout.
const watchIndex = "watch-index"

// mainTree is the key for the main checkout in Trees.
const mainTree = ""

// unwatched lists files in the main checkout that are always ignored, because they change while coven
// works. The repository's own ignore file could be changed by an agent.
const unwatched = "/.coven/worktrees/\n/.coven/run/\n/.coven/sessions/\n/.coven/secrets.yaml\n"

func indexCopy(w *repo.Worktree) string { return w.StatePath("watched-index") }

// takeFiles records the files of the main checkout, its index, and the files of other tasks.
func (m *Mark) takeFiles(ctx context.Context) error {
	m.Trees = map[string]string{}
	tree, err := checkoutTree(ctx, m.Worktree.Repo)
	if err != nil {
		return err
	}
	m.Trees[mainTree] = tree
	if err := m.copyIndex(); err != nil {
		return err
	}
	names, err := m.Worktree.Repo.TaskNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == m.Worktree.Name || slices.Contains(m.Active, name) {
			continue
		}
		if tree, err := siblingTree(ctx, m.Worktree.Repo, name); err == nil { // otherwise the worktree is not complete
			m.Trees[name] = tree
		}
	}
	return m.keepTrees(ctx)
}

// keepTrees protects the recorded trees from git gc.
func (m *Mark) keepTrees(ctx context.Context) error {
	var lines []string
	for name, tree := range m.Trees {
		lines = append(lines, "040000 tree "+tree+"\ttree-"+name)
	}
	out, err := m.Worktree.Repo.Git().Feed(ctx, git.Join(lines), "mktree", "-z")
	if err != nil {
		return err
	}
	return m.Worktree.Keep(ctx, names.KeepWatched, strings.TrimSpace(string(out)))
}

// copyIndex copies the index of the main checkout.
func (m *Mark) copyIndex() error {
	if err := os.Remove(indexCopy(m.Worktree)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := file.CopyRegular(indexCopy(m.Worktree), filepath.Join(m.Worktree.Repo.RootGit().Dir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mainWorktree returns the main checkout as a Worktree that belongs to no task, to stage its files.
func mainWorktree(ctx context.Context, r *repo.Repo) *repo.Worktree {
	w := r.Worktree(WatchName, repo.Record{})
	w.Path, w.Name = r.Root, WatchName
	if ref, err := r.HeadOf(ctx, r.RootGit().Dir); err == nil {
		w.Branch = strings.TrimPrefix(ref, names.HeadsPrefix)
	}
	return w
}

// checkoutTree stores the unconverted files of the main checkout and returns their tree.
func checkoutTree(ctx context.Context, r *repo.Repo) (string, error) {
	w := mainWorktree(ctx, r)
	g, err := content.RawGit(w)
	if err != nil {
		return "", err
	}
	exclude := filepath.Join(g.Dir, "info", "exclude")
	g.Dir = r.OwnStatePath("raw-checkout")
	if err := content.PrepareRaw(r, g.Dir); err != nil {
		return "", err
	}
	usual, err := file.ReadIfExists(exclude)
	if err == nil {
		err = file.WriteIfChanged(filepath.Join(g.Dir, "info", "exclude"), strings.TrimSuffix(usual, "\n")+"\n"+unwatched)
	}
	if err != nil {
		return "", err
	}
	return watchedTree(ctx, w, g)
}

// siblingTree stores the unconverted files of another task's worktree and returns their tree.
func siblingTree(ctx context.Context, r *repo.Repo, name string) (string, error) {
	rec, err := r.ReadRecord(name)
	if err != nil {
		return "", err
	}
	w := r.Worktree(rec.Task, rec)
	if err := w.CheckExists(); err != nil || !rec.Ready {
		return "", errors.Join(repo.ErrNoWorktree, err)
	}
	g, err := content.RawGit(w)
	if err != nil {
		return "", err
	}
	return watchedTree(ctx, w, g)
}

// watchedTree stages the files of a checkout in its private index. If git gc has removed objects of that
// index, it starts with an empty one.
func watchedTree(ctx context.Context, w *repo.Worktree, g git.Repo) (string, error) {
	tree, err := watchedOnce(ctx, w, g)
	if git.ExitCode(err) > 0 {
		if removeErr := os.Remove(w.StatePath(watchIndex)); removeErr == nil {
			return watchedOnce(ctx, w, g)
		}
	}
	return tree, err
}

func watchedOnce(ctx context.Context, w *repo.Worktree, g git.Repo) (string, error) {
	ix, err := content.Open(w, g, watchIndex)
	if err != nil {
		return "", err
	}
	defer ix.Drop()
	ix.SkipLarge = true
	tree, err := content.StageRaw(ctx, w, ix, nil)
	if err != nil {
		return "", err
	}
	return tree, ix.Keep()
}

// compareFiles adds the files that have changed. git reads files with the repository's filters, so it is
// not run if git's configuration has changed.
func (m *Mark) compareFiles(ctx context.Context, found *Found, own *ownWork) error {
	if slices.ContainsFunc(found.Changes, func(c Change) bool { return c.Kind == protected.Config }) {
		found.NotFiles = "the configuration of git has changed"
		return nil
	}
	tree, err := checkoutTree(ctx, m.Worktree.Repo)
	if err != nil {
		return err
	}
	changes, err := treeChanges(ctx, m.Worktree.Repo, m.Trees[mainTree], tree, protected.Checkout, "")
	if err != nil {
		return err
	}
	staged, err := m.indexChanges(ctx)
	if err != nil {
		return err
	}
	if err := own.refresh(); err != nil {
		return err
	}
	all, err := own.notLanded(ctx, append(changes, staged...))
	if err != nil {
		return err
	}
	found.Changes = append(found.Changes, all...)
	siblings, err := m.siblingsChanges(ctx, own)
	if err != nil {
		return err
	}
	found.Changes = append(found.Changes, siblings...)
	protected.Sort(found.Changes)
	return nil
}

// siblingsChanges compares the worktrees of other tasks that no coven process has worked on.
func (m *Mark) siblingsChanges(ctx context.Context, own *ownWork) ([]Change, error) {
	var all []Change
	for name, before := range m.Trees {
		if name == mainTree || own.runs(name) {
			continue
		}
		changes, err := m.siblingChanges(ctx, name, before)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := own.refresh(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(c Change) bool { return own.runs(c.Task) }), nil
}

// siblingChanges compares the worktree of another task. All files of a missing worktree count as deleted.
func (m *Mark) siblingChanges(ctx context.Context, name, before string) ([]Change, error) {
	tree, err := siblingTree(ctx, m.Worktree.Repo, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // coven has removed the task
	}
	if errors.Is(err, repo.ErrNoWorktree) {
		tree, err = emptyTree(ctx, m.Worktree.Repo)
	}
	if err != nil {
		return nil, err
	}
	return treeChanges(ctx, m.Worktree.Repo, before, tree, protected.Sibling, name)
}

func emptyTree(ctx context.Context, r *repo.Repo) (string, error) {
	return r.Git().Line(ctx, "hash-object", "-t", "tree", "-w", "--stdin")
}

// treeChanges compares two trees of unconverted files.
func treeChanges(ctx context.Context, r *repo.Repo, before, after string, kind protected.Kind, task string) ([]Change, error) {
	if before == after {
		return nil, nil
	}
	changed, err := r.Git().Changes(ctx, before, after)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, c := range changed {
		if content.IsReserved(c.Path) {
			continue
		}
		changes = append(changes, Change{
			Kind: kind, Name: c.Path, Task: task, Before: entryValue(c.OldMode, c.OldOid), After: entryValue(c.Mode, c.Oid),
		})
	}
	return changes, nil
}

func entryValue(mode, oid string) protected.Value {
	if strings.Trim(mode, "0") == "" {
		return protected.Value{}
	}
	return protected.Value{Text: oid, Mode: mode}
}

// notLanded removes the changes of files and index entries that landings made.
func (o *ownWork) notLanded(ctx context.Context, changes []Change) ([]Change, error) {
	if len(changes) == 0 || len(o.landings()) == 0 {
		return changes, nil
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Name)
	}
	g := o.m.Worktree.Repo.Git()
	landed, err := o.landedEntries(ctx, g, paths)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(changes, func(c Change) bool {
		return slices.ContainsFunc(landed[c.Name], func(e object.Entry) bool { return isLanded(ctx, o.m.Worktree.Repo, c, e) })
	}), nil
}

// isLanded reports whether a file or index entry equals a landed entry after git's conversions. Filters and
// line endings change the bytes of a file.
func isLanded(ctx context.Context, r *repo.Repo, c Change, e object.Entry) bool {
	switch {
	case e.Mode != c.After.Mode:
		return false
	case e.Oid == c.After.Text:
		return true
	case c.Kind == protected.Index || e.Oid == "":
		return false
	}
	g := r.RootGit()
	g.Settings = append(g.Settings, r.Filters...)
	content, err := g.Output(ctx, "cat-file", "--filters", "--path="+c.Name, e.Oid)
	if err != nil {
		return false
	}
	oid, err := g.Feed(ctx, content, "hash-object", "--no-filters", "--stdin")
	return err == nil && strings.TrimSpace(string(oid)) == c.After.Text
}

// indexChanges compares the index of the main checkout with the copy.
func (m *Mark) indexChanges(ctx context.Context) ([]Change, error) {
	path := filepath.Join(m.Worktree.Repo.RootGit().Dir, "index")
	before, err := file.ReadIfExists(indexCopy(m.Worktree))
	if err != nil {
		return nil, err
	}
	now, err := file.ReadIfExists(path)
	if err != nil || bytes.Equal([]byte(before), []byte(now)) {
		return nil, err
	}
	old, err := stagedEntries(ctx, m.Worktree.Repo, indexCopy(m.Worktree))
	if err != nil {
		return nil, err
	}
	entries, err := stagedEntries(ctx, m.Worktree.Repo, path)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for name, v := range old {
		if now := entries[name]; !now.Equal(v) {
			changes = append(changes, Change{Kind: protected.Index, Name: name, Before: v, After: now})
		}
	}
	for name, v := range entries {
		if !old[name].Exists() {
			changes = append(changes, Change{Kind: protected.Index, Name: name, After: v})
		}
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return content.IsReserved(c.Name) }), nil
}

// stagedEntries reads an index. The value of an entry in conflict contains all of its stages, so that it
// cannot be restored.
func stagedEntries(ctx context.Context, r *repo.Repo, path string) (map[string]protected.Value, error) {
	g := r.RootGit()
	g.Index = path
	fields, err := g.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		return nil, err
	}
	entries := map[string]protected.Value{}
	for _, field := range fields {
		meta, name, _ := strings.Cut(field, "\t")
		words := strings.Fields(meta)
		if len(words) != 3 {
			continue
		}
		v := entries[name]
		if v.Exists() {
			v.Text += " " + words[1]
		} else {
			v = protected.Value{Text: words[1], Mode: words[0]}
		}
		entries[name] = v
	}
	return entries, nil
}
