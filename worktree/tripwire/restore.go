package tripwire

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

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/rescue"
)

// An UnrestorableError lists changes that cannot be undone. Nothing was restored.
type UnrestorableError struct {
	Ref      string
	Again    []Change // changed again since; After is the present state
	Unstored []Change // the previous state is not stored
	Outside  []Change // files outside the repository, which coven does not write
}

func (e *UnrestorableError) Error() string {
	var why []string
	for _, group := range []struct {
		reason  string
		changes []Change
	}{
		{"changed again since", e.Again},
		{"not stored, because it was no readable file of at most 1 MB", e.Unstored},
		{"outside the repository", e.Outside},
	} {
		for _, c := range group.changes {
			why = append(why, c.Name+" ("+group.reason+")")
		}
	}
	return fmt.Sprintf("cannot restore %s: %s", e.Ref, strings.Join(why, ", "))
}

// Undo undoes the changes in a rescue: it restores refs, configuration, hooks and files to the state
// before. Items that already have this state do not change. Undo first stores the present state in the
// returned rescue, which undoes the Undo; its Ref is empty if there was nothing to do. If something has
// changed since the rescue, the error is an *UnrestorableError. After a kill, Undo can be repeated.
func Undo(ctx context.Context, r *repo.Repo, info rescue.Info) (undo rescue.Info, err error) {
	l, err := r.Lock(ctx, "restore", "restore "+info.Ref)
	if err != nil {
		return undo, err
	}
	defer l.Release()
	changes, err := RescuedChanges(ctx, r, info)
	if err != nil {
		return undo, err
	}
	now, err := presentState(ctx, r, changes)
	if err != nil {
		return undo, fmt.Errorf("restore %s: %w", info.Ref, err)
	}
	todo, err := now.plan(info, changes)
	if err != nil || len(todo) == 0 {
		return undo, err
	}
	var reversed []Change
	for _, c := range todo {
		reversed = append(reversed, c.Reversed())
	}
	undo, err = storeChanges(ctx, r, info.Task, reversed, "before "+info.Ref+" was restored")
	if err != nil {
		return undo, fmt.Errorf("restore %s: store the present state: %w", info.Ref, err)
	}
	failpoint.Point("rescue.stored")
	if err := undoChange(context.WithoutCancel(ctx), r, info, todo); err != nil {
		return undo, fmt.Errorf("restore %s: %w", info.Ref, err)
	}
	return undo, nil
}

// present is the present state of the changed items.
type present struct {
	repo  *repo.Repo
	refs  map[string]string
	index map[string]protected.Value
	files map[string]map[string]protected.Value // by task name and path; the main checkout has the name ""
}

func presentState(ctx context.Context, r *repo.Repo, changes []Change) (*present, error) {
	p := &present{repo: r, files: map[string]map[string]protected.Value{}}
	state, err := isolation.ReadState(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	p.refs = state.Refs
	for _, c := range changes {
		switch {
		case c.Kind == protected.Index && p.index == nil:
			if p.index, err = stagedEntries(ctx, r, filepath.Join(r.RootGit().Dir, "index")); err != nil {
				return nil, err
			}
		case (c.Kind == protected.Checkout || c.Kind == protected.Sibling) && p.files[c.Task] == nil:
			if p.files[c.Task], err = presentFiles(ctx, r, c.Task); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// presentFiles returns the files of the main checkout or of a task's worktree.
func presentFiles(ctx context.Context, r *repo.Repo, name string) (map[string]protected.Value, error) {
	read := func() (string, error) { return siblingTree(ctx, r, name) }
	if name == mainTree {
		read = func() (string, error) { return checkoutTree(ctx, r) }
	}
	tree, err := read()
	if err != nil {
		return nil, err
	}
	entries, err := r.Git().Entries(ctx, tree)
	if err != nil {
		return nil, err
	}
	files := map[string]protected.Value{}
	for _, e := range entries {
		files[e.Path] = entryValue(e.Mode, e.Oid)
	}
	return files, nil
}

func (p *present) of(c Change) protected.Value {
	switch c.Kind {
	case protected.Ref:
		return protected.Value{Text: p.refs[c.Name]}
	case protected.Index:
		return p.index[c.Name]
	case protected.Checkout, protected.Sibling:
		return p.files[c.Task][c.Name]
	}
	return protected.ValueOf(pathOf(p.repo, c))
}

// pathOf returns the path of a configuration file or hook.
func pathOf(r *repo.Repo, c Change) string {
	switch c.In {
	case protected.InGitDir:
		return filepath.Join(r.GitDir, c.Name)
	case protected.InCheckout:
		return filepath.Join(r.Root, c.Name)
	}
	return c.Name
}

// plan returns the changes to undo. Their After is the present state.
func (p *present) plan(info rescue.Info, changes []Change) ([]Change, error) {
	refused := &UnrestorableError{Ref: info.Ref}
	var todo []Change
	for _, c := range changes {
		now := p.of(c)
		switch {
		case now.Equal(c.Before):
		case !now.Equal(c.After):
			c.Before, c.After = c.After, now
			refused.Again = append(refused.Again, c)
		case !c.Before.Stored() || c.Kind == protected.Index && strings.Contains(c.Before.Text, " "):
			refused.Unstored = append(refused.Unstored, c)
		case c.In == protected.Elsewhere && (c.Kind == protected.Config || c.Kind == protected.Hook):
			refused.Outside = append(refused.Outside, c)
		default:
			todo = append(todo, c)
		}
	}
	if len(refused.Again)+len(refused.Unstored)+len(refused.Outside) > 0 {
		return nil, refused
	}
	return todo, nil
}

// undoChange undoes changes. Configuration and hooks come first, so that git works again.
func undoChange(ctx context.Context, r *repo.Repo, info rescue.Info, todo []Change) error {
	protected.Sort(todo)
	var files, index []Change
	for _, c := range todo {
		var err error
		switch c.Kind {
		case protected.Ref:
			err = undoRef(ctx, r, info, c)
		case protected.Index:
			index = append(index, c)
		case protected.Checkout, protected.Sibling:
			files = append(files, c)
		default:
			err = undoFile(r, c)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		failpoint.Point("rescue.each")
	}
	for len(files) > 0 {
		task := files[0].Task
		rest := slices.IndexFunc(files, func(c Change) bool { return c.Task != task })
		if rest < 0 {
			rest = len(files)
		}
		if err := undoFiles(ctx, r, task, files[:rest]); err != nil {
			return err
		}
		files = files[rest:]
	}
	var entries []object.Entry
	for _, c := range index {
		entries = append(entries, entryOf(c))
	}
	return content.Put(ctx, r, r.RootGit(), entries)
}

// entryOf returns the entry of the previous state. Its mode is "0" if there was none.
func entryOf(c Change) object.Entry {
	if !c.Before.Exists() {
		return object.Entry{Mode: "0", Path: c.Name}
	}
	return object.Entry{Mode: c.Before.Mode, Oid: c.Before.Text, Path: c.Name}
}

// undoFile restores a configuration file or hook.
func undoFile(r *repo.Repo, c Change) error {
	dir := r.GitDir
	if c.In == protected.InCheckout {
		dir = r.Root
	}
	if err := r.RefLog().Begin(logged(c)...); err != nil {
		return err
	}
	return putFileIn(dir, c.Name, c.Before)
}

// logged returns the edits that log the restoration of a file.
func logged(c Change) []ref.Edit {
	if strings.Contains(c.Before.Text+c.After.Text, " ") {
		return nil // the format of the log does not permit it
	}
	name := logName(c)
	switch {
	case !c.Before.Exists():
		return []ref.Edit{ref.Delete(name, c.After.Text)}
	case !c.After.Exists():
		return []ref.Edit{ref.Create(name, c.Before.Text)}
	}
	return []ref.Edit{ref.Move(name, c.Before.Text, c.After.Text)}
}

// putFileIn sets the value of a path in a directory. It follows no links out of the directory.
func putFileIn(dir, name string, v protected.Value) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	if !v.Exists() {
		return root.RemoveAll(name)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	making := name + ".coven-restore"
	if err := root.RemoveAll(making); err != nil {
		return err
	}
	if strings.HasPrefix(v.Mode, "L") {
		err = root.Symlink(string(v.Content), making)
	} else if err = root.WriteFile(making, v.Content, 0o600); err == nil {
		err = root.Chmod(making, permissions(v.Mode))
	}
	if err == nil {
		err = root.Rename(making, name)
	}
	return err
}

// permissions parses a mode such as -rwxr-xr-x.
func permissions(mode string) fs.FileMode {
	var perm fs.FileMode
	text := mode[max(0, len(mode)-9):]
	for i := range len(text) {
		if text[i] != '-' {
			perm |= 1 << (8 - i)
		}
	}
	return perm
}

func undoRef(ctx context.Context, r *repo.Repo, info rescue.Info, c Change) error {
	g, err := r.PlainGit()
	if err != nil {
		return err
	}
	target, symbolic := strings.CutPrefix(c.Before.Text, "ref: ")
	isFile := !file.Exists(filepath.Join(r.GitDir, "reftable"))
	switch {
	case c.Name == "HEAD" && isFile:
		return putFileIn(r.GitDir, c.Name, protected.Value{Text: c.Before.Text, Mode: "-rw-r--r--", Content: []byte(c.Before.Text + "\n")})
	case symbolic:
		return g.Run(ctx, "symbolic-ref", c.Name, target)
	}
	if err := giveBackObject(ctx, g, info, c.Before.Text); err != nil {
		return err
	}
	edit := ref.Move(c.Name, c.Before.Text, c.After.Text)
	if !object.IsID(c.After.Text) {
		if c.After.Exists() && isFile { // symbolic or broken
			if err := putFileIn(r.GitDir, c.Name, protected.Value{}); err != nil {
				return err
			}
			edit = ref.Set(c.Name, c.Before.Text)
		} else {
			edit = ref.Create(c.Name, c.Before.Text)
		}
	}
	if !c.Before.Exists() {
		if edit = ref.Delete(c.Name, c.After.Text); !object.IsID(c.After.Text) {
			return nil // the file was removed above
		}
	}
	return r.Transact(ctx, g, "coven: restore", edit)
}

// giveBackObject stores a tag or tree again, in case git gc has removed it.
func giveBackObject(ctx context.Context, g git.Repo, info rescue.Info, oid string) error {
	for _, kind := range []string{"tag", "tree"} {
		raw, err := g.File(ctx, info.Commit, objectsDir+"/"+oid+"."+kind)
		if err != nil {
			continue // a commit or blob, which the rescue protects
		}
		if _, err := g.Feed(ctx, raw, "hash-object", "-t", kind, "-w", "--stdin"); err != nil {
			return err
		}
	}
	return nil
}

// undoFiles restores files of the main checkout or of a task's worktree.
func undoFiles(ctx context.Context, r *repo.Repo, name string, changes []Change) error {
	w := mainWorktree(ctx, r)
	if name != mainTree {
		rec, err := r.ReadRecord(name)
		if err != nil {
			return err
		}
		w = r.Worktree(rec.Task, rec)
	}
	g, err := content.RawGit(w)
	if err != nil {
		return err
	}
	ix, err := content.Open(w, g, "none")
	if err != nil {
		return err
	}
	defer ix.Drop()
	root, err := os.OpenRoot(w.Path)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	var entries []object.Entry
	for _, c := range changes {
		if err := root.Remove(c.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if c.Before.Exists() {
			entries = append(entries, entryOf(c))
		}
	}
	return ix.CheckOutOnly(ctx, entries)
}
