package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/tripwire"
)

// Without a fence, the files of checkouts are compared as the trees of private indexes, like
// snapshots: tracked and untracked files that are not ignored.

// watchName is the name of the directory, below tasks, of the main checkout's private index.
const watchName = ".checkout"

// watchIndex is the name of the private index of a checkout.
const watchIndex = "watch-index"

// mainTree is the key of the main checkout's tree.
const mainTree = ""

// unwatched lists what is ignored in the main checkout in any case: its files change while
// coven works, and an agent could change the ignore file that says so.
const unwatched = "/.coven/worktrees/\n/.coven/run/\n/.coven/sessions/\n/.coven/secrets.yaml\n"

func (w *Worktree) indexCopy() string { return w.ours("watched-index") }

// takeFiles records the files of the main checkout, its index, and those of other tasks.
func (m *Mark) takeFiles(ctx context.Context) error {
	m.Trees = map[string]string{}
	tree, err := m.w.repo.checkoutTree(ctx)
	if err != nil {
		return err
	}
	m.Trees[mainTree] = tree
	if err := m.copyIndex(); err != nil {
		return err
	}
	names, err := m.w.repo.taskNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == m.w.name || slices.Contains(m.Active, name) {
			continue
		}
		if tree, err := m.w.repo.siblingTree(ctx, name); err == nil { // otherwise it is not complete
			m.Trees[name] = tree
		}
	}
	return m.keepTrees(ctx)
}

// keepTrees protects the trees from git gc.
func (m *Mark) keepTrees(ctx context.Context) error {
	var lines []string
	for name, tree := range m.Trees {
		lines = append(lines, "040000 tree "+tree+"\ttree-"+name)
	}
	out, err := m.w.repo.git().Feed(ctx, git.Join(lines), "mktree", "-z")
	if err != nil {
		return err
	}
	return m.w.keep(ctx, keepWatched, strings.TrimSpace(string(out)))
}

// copyIndex copies the index of the main checkout.
func (m *Mark) copyIndex() error {
	if err := os.Remove(m.w.indexCopy()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := file.CopyRegular(m.w.indexCopy(), filepath.Join(m.w.repo.rootGit().Dir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mainWorktree returns the main checkout as a Worktree that is no task's, to stage its files.
func (r *Repo) mainWorktree(ctx context.Context) *Worktree {
	w := r.worktree(watchName, record{})
	w.Path, w.name = r.Root, watchName
	if ref, err := r.headOf(ctx, r.rootGit().Dir); err == nil {
		w.Branch = strings.TrimPrefix(ref, headsPrefix)
	}
	return w
}

// checkoutTree stores the files of the main checkout and returns their raw tree.
func (r *Repo) checkoutTree(ctx context.Context) (string, error) {
	w := r.mainWorktree(ctx)
	g, err := w.rawGit()
	if err != nil {
		return "", err
	}
	exclude := filepath.Join(g.Dir, "info", "exclude")
	g.Dir = r.ours("raw-checkout")
	if err := r.prepareRaw(g.Dir); err != nil {
		return "", err
	}
	usual, err := file.ReadIfExists(exclude)
	if err == nil {
		err = file.WriteIfChanged(filepath.Join(g.Dir, "info", "exclude"), strings.TrimSuffix(usual, "\n")+"\n"+unwatched)
	}
	if err != nil {
		return "", err
	}
	return w.watchedTree(ctx, g)
}

// siblingTree stores the files of another task's worktree and returns their raw tree.
func (r *Repo) siblingTree(ctx context.Context, name string) (string, error) {
	rec, err := r.readRecord(name)
	if err != nil {
		return "", err
	}
	w := r.worktree(rec.Task, rec)
	if err := w.here(); err != nil || !rec.Ready {
		return "", errors.Join(ErrNoWorktree, err)
	}
	g, err := w.rawGit()
	if err != nil {
		return "", err
	}
	return w.watchedTree(ctx, g)
}

// watchedTree stages the files of a checkout in its private index. If git gc has removed objects
// of that index, it begins with an empty one.
func (w *Worktree) watchedTree(ctx context.Context, g git.Repo) (string, error) {
	tree, err := w.watchedOnce(ctx, g)
	if git.ExitCode(err) > 0 {
		if removeErr := os.Remove(w.ours(watchIndex)); removeErr == nil {
			return w.watchedOnce(ctx, g)
		}
	}
	return tree, err
}

func (w *Worktree) watchedOnce(ctx context.Context, g git.Repo) (string, error) {
	ix, err := w.openIndex(g, watchIndex)
	if err != nil {
		return "", err
	}
	defer ix.drop()
	tree, err := w.stageRaw(ctx, ix, nil)
	if err != nil {
		return "", err
	}
	return tree, ix.keep()
}

// compareFiles adds the files that have changed. git reads files with the repository's filters,
// so it does not run if the configuration of git has changed.
func (m *Mark) compareFiles(ctx context.Context, found *Found, own *ownWork) error {
	if slices.ContainsFunc(found.Changes, func(c Change) bool { return c.Kind == tripwire.Config }) {
		found.NotFiles = "the configuration of git has changed"
		return nil
	}
	tree, err := m.w.repo.checkoutTree(ctx)
	if err != nil {
		return err
	}
	changes, err := m.w.repo.treeChanges(ctx, m.Trees[mainTree], tree, tripwire.Checkout, "")
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
	tripwire.Sort(found.Changes)
	return nil
}

// siblingsChanges compares the worktrees of the other tasks on which no coven has worked.
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

// siblingChanges compares the worktree of another task. A worktree that is gone has lost all
// of its files.
func (m *Mark) siblingChanges(ctx context.Context, name, before string) ([]Change, error) {
	tree, err := m.w.repo.siblingTree(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // coven removed the task
	}
	if errors.Is(err, ErrNoWorktree) {
		tree, err = m.w.repo.emptyTree(ctx)
	}
	if err != nil {
		return nil, err
	}
	return m.w.repo.treeChanges(ctx, before, tree, tripwire.Sibling, name)
}

func (r *Repo) emptyTree(ctx context.Context) (string, error) {
	return r.git().Line(ctx, "hash-object", "-t", "tree", "-w", "--stdin")
}

// treeChanges compares two raw trees.
func (r *Repo) treeChanges(ctx context.Context, before, after string, kind tripwire.Kind, task string) ([]Change, error) {
	if before == after {
		return nil, nil
	}
	changed, err := r.git().Changes(ctx, before, after)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, c := range changed {
		if isReserved(c.Path) {
			continue
		}
		changes = append(changes, Change{
			Kind: kind, Name: c.Path, Task: task, Before: entryValue(c.OldMode, c.OldOid), After: entryValue(c.Mode, c.Oid),
		})
	}
	return changes, nil
}

func entryValue(mode, oid string) tripwire.Value {
	if strings.Trim(mode, "0") == "" {
		return tripwire.Value{}
	}
	return tripwire.Value{Text: oid, Mode: mode}
}

// notLanded returns the changes of files and index entries that are not the work of landings.
func (o *ownWork) notLanded(ctx context.Context, changes []Change) ([]Change, error) {
	if len(changes) == 0 || len(o.landings()) == 0 {
		return changes, nil
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Name)
	}
	g := o.m.w.repo.git()
	landed, err := o.landedEntries(ctx, g, paths)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(changes, func(c Change) bool {
		return slices.ContainsFunc(landed[c.Name], func(e git.Entry) bool { return o.m.w.repo.isLanded(ctx, c, e) })
	}), nil
}

// isLanded reports whether the file, or the index entry, is what git makes of a landed entry.
// Filters and line endings make the bytes of a file differ from the stored ones.
func (r *Repo) isLanded(ctx context.Context, c Change, e git.Entry) bool {
	switch {
	case e.Mode != c.After.Mode:
		return false
	case e.Oid == c.After.Text:
		return true
	case c.Kind == tripwire.Index || e.Oid == "":
		return false
	}
	g := r.rootGit()
	g.Settings = append(g.Settings, r.filters...)
	content, err := g.Output(ctx, "cat-file", "--filters", "--path="+c.Name, e.Oid)
	if err != nil {
		return false
	}
	oid, err := g.Feed(ctx, content, "hash-object", "--no-filters", "--stdin")
	return err == nil && strings.TrimSpace(string(oid)) == c.After.Text
}

// indexChanges compares the index of the main checkout with the copy.
func (m *Mark) indexChanges(ctx context.Context) ([]Change, error) {
	path := filepath.Join(m.w.repo.rootGit().Dir, "index")
	before, err := file.ReadIfExists(m.w.indexCopy())
	if err != nil {
		return nil, err
	}
	now, err := file.ReadIfExists(path)
	if err != nil || bytes.Equal([]byte(before), []byte(now)) {
		return nil, err
	}
	old, err := m.w.repo.stagedEntries(ctx, m.w.indexCopy())
	if err != nil {
		return nil, err
	}
	entries, err := m.w.repo.stagedEntries(ctx, path)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for name, v := range old {
		if now := entries[name]; !now.Is(v) {
			changes = append(changes, Change{Kind: tripwire.Index, Name: name, Before: v, After: now})
		}
	}
	for name, v := range entries {
		if !old[name].Exists() {
			changes = append(changes, Change{Kind: tripwire.Index, Name: name, After: v})
		}
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return isReserved(c.Name) }), nil
}

// stagedEntries reads an index. An entry in conflict has all of its stages in one value, which
// cannot be restored.
func (r *Repo) stagedEntries(ctx context.Context, path string) (map[string]tripwire.Value, error) {
	g := r.rootGit()
	g.Index = path
	fields, err := g.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		return nil, err
	}
	entries := map[string]tripwire.Value{}
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
			v = tripwire.Value{Text: words[1], Mode: words[0]}
		}
		entries[name] = v
	}
	return entries, nil
}
