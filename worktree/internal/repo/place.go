package repo

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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

// checkoutFile is the file in coven's directory outside of the checkout that names the checkout, relative to the directory
// or absolute, and, in a second line, the repository's ID. Agents cannot write it.
const checkoutFile = ".checkout"

// idFile is the file in coven's part of the git directory with a random ID. By it, a repository recognizes its directory,
// also if another repository has the path of the checkout now.
const idFile = "id"

// maxCheckoutFile limits its size, in bytes.
const maxCheckoutFile = 1 << 14

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

// usable reports whether the directory beside the checkout can be used without a setting that names it.
func (r *Repo) usable(p Place) bool {
	var here, above unix.Stat_t
	parent := filepath.Dir(p.Own)
	if unix.Stat(r.Root, &here) != nil || unix.Stat(parent, &above) != nil || here.Dev != above.Dev {
		return false
	}
	return unix.Access(parent, unix.W_OK|unix.X_OK) == nil && r.checkPlace(p) == nil
}

// checkPlace returns an error if coven's directory exists and is not that of the repository.
func (r *Repo) checkPlace(p Place) error {
	info, err := os.Lstat(p.Own)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrPlace, p.Own)
	}
	entries, err := os.ReadDir(p.Own)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) // another coven may just create them
	switch root, id := ownerOf(p.Own); {
	case root == "" && len(entries) > 0:
		return fmt.Errorf("%w: %s contains other files", ErrPlace, p.Own)
	case root != "" && id != r.id():
		return fmt.Errorf("%w: %s belongs to another repository, which was at %s", ErrPlace, p.Own, root)
	}
	return nil
}

// id returns the repository's ID, or "" if it has none yet.
func (r *Repo) id() string {
	id, _ := file.Read(r.StatePath(idFile), maxCheckoutFile) // without it, another directory is used
	return strings.TrimSpace(string(id))
}

// ensureID returns the repository's ID, and creates it if necessary.
func (r *Repo) ensureID() (string, error) {
	if id := r.id(); id != "" {
		return id, nil
	}
	text := rand.Text()
	temp := r.StatePath("." + idFile + "-" + text)
	if err := os.MkdirAll(r.StatePath(), 0o755); err != nil {
		return "", err
	}
	if err := file.WriteNoSync(temp, []byte(text+"\n")); err != nil {
		return "", err
	}
	err := os.Link(temp, r.StatePath(idFile)) // unless another process has just created it
	if err := os.Remove(temp); err != nil {
		return "", err
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return r.id(), nil
}

// EnsurePlace creates the directories of new worktrees.
func (r *Repo) EnsurePlace() error {
	p := r.Place()
	if isIn(p.Own, r.Root) {
		return tagCache(p.Own)
	}
	if err := r.checkPlace(p); err != nil {
		return err
	}
	id, err := r.ensureID()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	if err := os.MkdirAll(p.Own, 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
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

// ownerOf returns the checkout that coven's directory belongs to, and the repository's ID. They are empty for other
// directories, and for those of other users, who could plant them in a directory such as /tmp.
func ownerOf(dir string) (root, id string) {
	info, err := os.Lstat(filepath.Join(dir, checkoutFile))
	if err != nil || !isOurs(info) {
		return "", ""
	}
	raw, err := regularfile.ReadIn(dir, checkoutFile, maxCheckoutFile)
	root, id, complete := strings.Cut(strings.TrimSuffix(string(raw), "\n"), "\n")
	if err != nil || !complete || root == "" || strings.Contains(root, "\x00") {
		return "", ""
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	return root, id
}

// isOurs reports whether a file belongs to the user, or to root.
func isOurs(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && (owner.Uid == 0 || int(owner.Uid) == os.Geteuid())
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

// WorktreesBeside returns the directories outside of the main checkout that contain worktrees of tasks, or are worktrees.
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
	case filepath.IsAbs(rec.Dir):
		return rec.Dir
	}
	return filepath.Join(r.Root, rec.Dir)
}

// RecordedDir returns Record.Dir of a new worktree.
func (r *Repo) RecordedDir(name string) string {
	p := r.Place()
	if p.template == insidePlace {
		return ""
	}
	if rel, err := filepath.Rel(r.Root, p.Path(name)); err == nil && !filepath.IsAbs(p.template) {
		return rel
	}
	return p.Path(name)
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
		if root, _ := ownerOf(above); root != "" && has(root, at) {
			return root
		}
		if !file.Exists(filepath.Join(at, ".git")) {
			continue
		}
		beside, _ := filepath.Glob(filepath.Join(globQuoted(above), "*"+placeSuffix)) // the pattern is valid
		for _, own := range beside {
			if root, _ := ownerOf(own); root != "" && has(root, at) {
				return root
			}
		}
	}
	return ""
}

// has reports whether a worktree of one of a checkout's tasks is at a path.
func has(root, path string) bool {
	r := &Repo{Root: root, GitDir: filepath.Join(root, ".git"), Memo: &memo{}}
	if at := r.GitDirOf(root); at != "" {
		r.GitDir = at
		if file.Exists(filepath.Join(at, "commondir")) { // a linked worktree
			r.GitDir = filepath.Dir(filepath.Dir(at))
		}
	}
	return r.worktreeAt(path) != ""
}

// globQuoted returns a pattern that matches only the path.
func globQuoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// isIn reports whether path is dir or in it.
func isIn(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
