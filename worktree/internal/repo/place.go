package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
)

// Fields of the template of worktree.dir.
const (
	TaskField = "{task}" // the safe name of the task
	RepoField = "{repo}" // the name of the main checkout's directory
)

// BesidePlace is the template of the directories of worktrees, if the directory of the main checkout can be written and
// is on the same file system. In the checkout they would be walked by the tools of a project, copied to images and
// removed by git clean, and relative paths to the projects beside it would lead nowhere.
const BesidePlace = "../" + RepoField + placeSuffix + "/" + TaskField

// insidePlace is the template otherwise, and that of coven 0.1.0.
const insidePlace = names.WorktreesDir + "/" + TaskField

// placeSuffix follows the name of a checkout in the name of coven's directory beside it.
const placeSuffix = ".coven"

// ErrPlace means that coven cannot create worktrees in the directory of worktree.dir.
var ErrPlace = exit.Sentinel(exit.Usage, "coven help worktrees", "cannot create worktrees there")

// A Place is where new worktrees are created.
type Place struct {
	Dir string // the directory of the worktrees
	// Own contains only files of coven: the pool, the trash, and the worktrees if it is Dir.
	Own string

	setting        string // WorktreeDir
	template       string
	prefix, suffix string // of the names of worktrees
	err            error  // why the setting cannot be used
}

// Path returns the directory of a new worktree.
func (p Place) Path(name string) string { return filepath.Join(p.Dir, p.prefix+name+p.suffix) }

// Place returns the place of new worktrees, according to the repository's template.
func (r *Repo) Place() Place {
	r.Memo.Mu.Lock()
	defer r.Memo.Mu.Unlock()
	if known := r.Memo.Place; known.template != "" && known.setting == r.WorktreeDir {
		return known
	}
	template := r.WorktreeDir
	if template == "" {
		template = BesidePlace
		if !r.usable(newPlace(r.Root, template)) {
			template = insidePlace
		}
	}
	p := newPlace(r.Root, template)
	if err := r.checkTemplate(p); err != nil {
		p = newPlace(r.Root, insidePlace)
		p.err = err
	}
	p.setting = r.WorktreeDir
	r.Memo.Place = p
	return p
}

func newPlace(root, template string) Place {
	repo := filepath.Base(root)
	parent, last := filepath.Split(template)
	p := Place{template: template, Dir: strings.ReplaceAll(parent, RepoField, repo)}
	if !filepath.IsAbs(p.Dir) {
		p.Dir = filepath.Join(root, p.Dir)
	}
	p.Dir = filepath.Clean(p.Dir)
	p.prefix, p.suffix, _ = strings.Cut(strings.ReplaceAll(last, RepoField, repo), TaskField)
	p.Own = p.Dir
	if last != TaskField || !strings.Contains(parent, RepoField) && !isIn(p.Dir, root) {
		p.Own = filepath.Join(p.Dir, repo+placeSuffix) // other directories may be in Dir
	}
	return p
}

// checkTemplate returns an error if the template leads into the checkout, or to a directory of another repository.
func (r *Repo) checkTemplate(p Place) error {
	if p.template == insidePlace {
		return nil
	}
	if !r.isOutside(p) {
		return fmt.Errorf("%w: %s leads into the checkout, or contains it", ErrPlace, p.template)
	}
	return r.checkPlace(p)
}

// CheckPlace returns an error if new worktrees cannot be created.
func (r *Repo) CheckPlace() error {
	p := r.Place()
	if p.err != nil || isIn(p.Own, r.Root) {
		return p.err
	}
	if err := r.checkPlace(p); err != nil {
		return err
	}
	return checkWritable(p.Dir)
}

// checkWritable returns an error if files cannot be created in a directory, or the directory itself cannot.
func checkWritable(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	for ; errors.Is(err, fs.ErrNotExist); err = unix.Access(dir, unix.W_OK|unix.X_OK) {
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return fmt.Errorf("%w: %s cannot be written: %w", ErrPlace, dir, err)
	}
	return nil
}

// EnsurePlace creates the directories of new worktrees.
func (r *Repo) EnsurePlace() error {
	if err := r.CheckPlace(); err != nil {
		return err
	}
	p := r.Place()
	if isIn(p.Own, r.Root) {
		return tagCache(p.Own)
	}
	id, err := r.ID()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if err := os.MkdirAll(p.Own, 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	r.Share(p.Own)
	root := r.Root
	if !filepath.IsAbs(p.template) {
		if rel, err := filepath.Rel(p.Own, r.Root); err == nil {
			root = rel
		}
	}
	if err := writeOnce(filepath.Join(p.Own, checkoutFile), root+"\n"+id+"\n"); err != nil {
		return err
	}
	if insideAny(filepath.Dir(p.Own)) { // the checkout is in another repository
		if err := writeOnce(filepath.Join(p.Own, ".gitignore"), "*\n"); err != nil {
			return err
		}
	}
	return tagCache(p.Own)
}

// writeOnce replaces a file that has another content.
func writeOnce(path, content string) error {
	if has, err := file.Read(path, maxCheckoutFile); err == nil && string(has) == content {
		return nil
	}
	return regularfile.Replace(path, []byte(content), 0o644)
}

// cacheTag is the content of CACHEDIR.TAG, by which programs that make backups and indexes recognize a cache.
const cacheTag = "Signature: 8a477f597d28d172789f06886806bc55\n# Worktrees of coven's tasks. Their work is saved in the git directory of the repository.\n"

// tagCache marks a directory, which may not exist yet, as a cache.
func tagCache(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, "CACHEDIR.TAG")
	if file.Exists(path) {
		return nil
	}
	return regularfile.Replace(path, []byte(cacheTag), 0o644)
}

// WorktreeDirs returns the directories that contain only files of coven: that of the present place, and that in the main
// checkout. They need not exist.
func (r *Repo) WorktreeDirs() []string {
	inside := filepath.Join(r.Root, names.WorktreesDir)
	if own := r.Place().Own; own != inside {
		return []string{own, inside}
	}
	return []string{inside}
}

// WorktreesBeside returns the directories outside of the main checkout that contain worktrees of tasks, or are worktrees, with those
// of Origin.
func (r *Repo) WorktreesBeside() []string {
	p := r.Place()
	var dirs []string
	if file.Exists(p.Own) && !isIn(p.Own, r.Root) {
		dirs = append(dirs, p.Own)
	}
	all, _ := r.TaskNames() // without records there is no worktree
	for _, name := range all {
		path := r.WorktreePath(name)
		if !isIn(path, p.Own) && !isIn(path, r.Root) && file.Exists(path) {
			dirs = append(dirs, path)
		}
	}
	if r.Origin != nil {
		dirs = append(dirs, r.Origin.WorktreesBeside()...)
	}
	return dirs
}

// CheckoutFile returns the file by which coven finds the main checkout from a worktree outside of it.
func (r *Repo) CheckoutFile() string { return filepath.Join(r.Place().Own, checkoutFile) }

// InWorktreeDir reports whether a path is in one of WorktreeDirs.
func (r *Repo) InWorktreeDir(path string) bool {
	return slices.ContainsFunc(r.WorktreeDirs(), func(dir string) bool { return path != dir && isIn(path, dir) })
}

// OwnDir returns the directory for the pool and the trash that a path can be moved to by renaming it.
func (r *Repo) OwnDir(path string) string {
	if inside := filepath.Join(r.Root, names.WorktreesDir); isIn(path, inside) {
		return inside
	}
	return r.Place().Own
}

// WorktreePath returns the directory of the worktree with this name, or that of a new one.
func (r *Repo) WorktreePath(name string) string {
	rec, _ := r.ReadRecord(name) // without one, there may be remains
	return r.pathOf(name, rec)
}

// pathOf is WorktreePath for a worktree with this record, which is empty for a new one.
func (r *Repo) pathOf(name string, rec Record) string {
	inside := filepath.Join(r.Root, names.WorktreesDir, name)
	if rec.Task == "" && !file.Exists(inside) {
		return r.Place().Path(name)
	}
	switch {
	case rec.Dir == "":
		return inside
	case r.IsCopyOf(rec.Root):
		return r.Place().Path(name) // the worktree is the original's
	case filepath.IsAbs(rec.Dir):
		return rec.Dir
	}
	return filepath.Join(r.Root, rec.Dir)
}

// NewRecord returns the record of a new worktree. slug is the title of the task.
func (r *Repo) NewRecord(taskID, slug, base string) Record {
	rec := Record{Task: taskID, Base: base}
	if branch := r.NewBranch(taskID, slug); branch != names.Branch(taskID) {
		rec.Branch = branch
	}
	p := r.Place()
	if p.template == insidePlace {
		return rec
	}
	rec.Root, rec.Dir = r.Root, p.Path(names.SafeName(taskID))
	if rel, err := filepath.Rel(r.Root, rec.Dir); err == nil && !filepath.IsAbs(p.template) {
		rec.Dir = rel
	}
	return rec
}

// worktreeAt returns the name of the task whose worktree contains a directory, or "".
func (r *Repo) worktreeAt(dir string) string {
	if inside, err := filepath.Rel(filepath.Join(r.Root, names.WorktreesDir), dir); err == nil && inside != "." && filepath.IsLocal(inside) {
		name, _, _ := strings.Cut(inside, string(filepath.Separator))
		return name
	}
	all, _ := r.TaskNames() // without records there is no worktree
	for _, name := range all {
		rec, err := r.ReadRecord(name)
		if err == nil && rec.Dir != "" && sameOrBelow(dir, r.pathOf(name, rec)) {
			return name
		}
	}
	return ""
}

// sameOrBelow reports whether dir, which has no symbolic links, is in top.
func sameOrBelow(dir, top string) bool {
	if real, err := filepath.EvalSymlinks(top); err == nil {
		top = real
	}
	return isIn(dir, top)
}

// placedIn returns the main checkout of the repository that a directory outside of it belongs to, because it is in a
// worktree of a task, or "". It judges by files that agents cannot write.
func placedIn(dir string) string {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		above := filepath.Dir(at)
		if root, _ := ownerOf(above, isOurs); root != "" && has(root, at) {
			return root
		}
		if !file.Exists(filepath.Join(at, ".git")) {
			continue
		}
		beside, _ := filepath.Glob(filepath.Join(globQuoted(above), "*"+placeSuffix)) // the pattern is valid
		for _, own := range beside {
			if root, _ := ownerOf(own, isOurs); root != "" && has(root, at) {
				return root
			}
		}
	}
	return ""
}

// has reports whether a worktree of one of a checkout's tasks is at a path.
func has(root, path string) bool {
	return repoAt(root).worktreeAt(path) != ""
}

// globQuoted returns a pattern that matches only the path.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// isIn reports whether path is dir or in it.
func isIn(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
