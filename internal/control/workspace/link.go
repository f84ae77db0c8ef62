package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/commit"
)

// except links the directories of the main checkout, and records which paths are left out of the change and which are not.
func (s *Workspace) except() error {
	names, err := s.link()
	if err != nil {
		return err
	}
	return commit.Except(s.Worktree, s.Allow, names)
}

// link makes directories of the main checkout appear in the worktree, and returns their paths in it. With mounts, programs
// see them in the place of an empty directory, so that relative paths in them lead to files of the worktree. Otherwise they
// are symbolic links. One that is a link in the main checkout is a link to the same directory: a mount would show files that
// the sandbox hides there.
func (s *Workspace) link() (names []string, err error) {
	from := s.Repo.Supplier()
	if len(s.Link) == 0 || from.Bare {
		return nil, nil
	}
	root, err := os.OpenRoot(s.Worktree.Path)
	if err != nil {
		return nil, fmt.Errorf("link directories: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	s.linked = map[string]string{}
	for _, name := range s.Link {
		source := filepath.Join(from.Root, filepath.FromSlash(name))
		if info, err := os.Stat(source); err != nil || !info.IsDir() {
			s.warn("worktree.link: the main checkout has no directory " + name)
			continue
		}
		isLink := isSymlink(source)
		if real, err := filepath.EvalSymlinks(source); err == nil && isLink {
			source = real
		}
		if !isFree(root, name, source) {
			s.warn("worktree.link: the worktree has another " + name)
			continue
		}
		if err := s.linkTo(root, name, source, isLink); err != nil {
			return nil, fmt.Errorf("link %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// isSymlink reports whether a path is a symbolic link.
func isSymlink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// linkTo makes one directory appear in the worktree, as a link if isLink is set.
func (s *Workspace) linkTo(root *os.Root, name, source string, isLink bool) error {
	if err := root.Remove(name); err != nil && !os.IsNotExist(err) { // a link or an empty directory
		return err
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if isLink || !s.Sandbox.Replaces() {
		return root.Symlink(source, name)
	}
	s.linked[filepath.Join(s.Worktree.Path, name)] = source
	return root.Mkdir(name, 0o755)
}

// isFree reports whether nothing is at a path of the worktree but an empty directory, or the link to source.
func isFree(root *os.Root, name, source string) bool {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return os.IsNotExist(err)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return err == nil && target == source
	case info.IsDir():
		entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(name))
		return err == nil && len(entries) == 0
	}
	return false
}
