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

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
)

// checkoutFile is the file in coven's directory outside of the checkout that names the checkout, relative to the directory
// or absolute, and, in a second line, the repository's ID. Agents cannot write it.
const checkoutFile = ".checkout"

// idFile is the file in coven's part of the git directory with a random ID. By it, a repository recognizes its directory,
// also if another repository has the path of the checkout now.
const idFile = "id"

// maxCheckoutFile limits its size, in bytes.
const maxCheckoutFile = 1 << 14

// usable reports whether the directory beside the checkout can be used without a setting that names it.
func (r *Repo) usable(p Place) bool {
	var here, above unix.Stat_t
	parent := filepath.Dir(p.Own)
	if unix.Stat(r.Root, &here) != nil || unix.Stat(parent, &above) != nil || here.Dev != above.Dev {
		return false
	}
	return unix.Access(parent, unix.W_OK|unix.X_OK) == nil && !strings.Contains(r.Root, "\n") && r.checkPlace(p) == nil
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
	if !r.isTrusted(info) || info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%w: other users can change %s", ErrPlace, p.Own)
	}
	entries, err := os.ReadDir(p.Own)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPlace, err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { // another coven may just create it
		return strings.HasPrefix(e.Name(), "."+checkoutFile)
	})
	switch root, id := ownerOf(p.Own, r.isTrusted); {
	case root == "" && len(entries) > 0:
		return fmt.Errorf("%w: %s contains other files", ErrPlace, p.Own)
	case root != "" && (id != r.id() || r.IsCopyOf(root)):
		return fmt.Errorf("%w: %s belongs to another repository, which was at %s", ErrPlace, p.Own, root)
	}
	return nil
}

// id returns the repository's ID, or "" if it has none yet.
func (r *Repo) id() string {
	id, _ := file.Read(r.StatePath(idFile), maxCheckoutFile) // without it, another directory is used
	return strings.TrimSpace(string(id))
}

// ID returns the repository's ID, and creates it if necessary.
func (r *Repo) ID() (string, error) {
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

// ownerOf returns the checkout that coven's directory belongs to, and the repository's ID. They are empty for other
// directories, and for those that are not trusted, because others could plant them in a directory such as /tmp.
func ownerOf(dir string, trusted func(os.FileInfo) bool) (root, id string) {
	info, err := os.Lstat(filepath.Join(dir, checkoutFile))
	if err != nil || !trusted(info) {
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

// isOutside reports whether a place is outside of the checkout and the git directory, and does not contain them.
func (r *Repo) isOutside(p Place) bool {
	dir, own := resolved(p.Dir), resolved(p.Own)
	for _, top := range []string{resolved(r.Root), resolved(r.GitDir)} {
		if isIn(dir, top) || isIn(own, top) || isIn(top, own) {
			return false
		}
	}
	return true
}

// resolved resolves the symbolic links in the part of a path that exists.
func resolved(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			rest, err := filepath.Rel(at, path)
			if err != nil {
				return path
			}
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// IsCopyOf reports whether a directory is another checkout with the repository's ID: one of them is a copy of the other.
func (r *Repo) IsCopyOf(root string) bool {
	if root == "" || root == r.Root || sameFile(root, r.Root) || !file.Exists(filepath.Join(root, ".git")) {
		return false
	}
	id := r.id()
	return id != "" && repoAt(root).id() == id
}

// repoAt returns a handle for the files of coven in the repository of a main checkout, without running git.
func repoAt(root string) *Repo {
	r := &Repo{Root: root, GitDir: filepath.Join(root, ".git"), Memo: &memo{}}
	if at := r.GitDirOf(root); at != "" {
		r.GitDir = at
		if file.Exists(filepath.Join(at, "commondir")) { // a linked worktree
			r.GitDir = filepath.Dir(filepath.Dir(at))
		}
	}
	return r
}
