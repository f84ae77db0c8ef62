package regularfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// OpenTree returns the files of a directory below root, as FS does: it follows links that stay in root. If root is
// empty, dir is the user's own, and its links may lead anywhere. The directory need not exist. Call closeTree in
// the end.
func OpenTree(root, dir string) (tree fs.FS, closeTree func(), err error) {
	if root == "" {
		return os.DirFS(dir), func() {}, nil
	}
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, nil, err
	}
	return FS(opened, dir), func() { _ = opened.Close() }, nil
}

// Entry is an entry of a directory. For a link, it describes the target.
type Entry struct {
	Name  string
	IsDir bool
	Err   error // why the link cannot be followed
}

// Entries returns the entries of a directory of a tree, sorted by name.
func Entries(tree fs.FS, dir string) ([]Entry, error) {
	found, err := fs.ReadDir(tree, dir)
	var all []Entry
	for _, e := range found {
		entry := Entry{Name: e.Name(), IsDir: e.IsDir()}
		if e.Type()&fs.ModeSymlink != 0 {
			entry.IsDir, entry.Err = follow(tree, path.Join(dir, e.Name()))
		}
		all = append(all, entry)
	}
	return all, err
}

// follow reports whether a link leads to a directory.
func follow(tree fs.FS, link string) (isDir bool, err error) {
	info, err := fs.Stat(tree, link)
	if err == nil {
		return info.IsDir(), nil
	}
	to, _ := fs.ReadLink(tree, link) // only for the message
	if errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("it is a link to %s, which does not exist", to)
	}
	return false, fmt.Errorf("it is a link to %s: coven follows relative links that stay in the repository", to)
}

// ReadFrom returns the content of a file of a tree, of at most max bytes.
func ReadFrom(tree fs.FS, name string, max int64) ([]byte, error) {
	info, err := fs.Stat(tree, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotFile
	}
	f, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(data)) > max {
		err = &SizeError{max}
	}
	return data, err
}

// ReadLink implements fs.ReadLinkFS.
func (f files) ReadLink(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.Readlink(path.Join(f.dir, name))
}

// Lstat implements fs.ReadLinkFS.
func (f files) Lstat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.Lstat(path.Join(f.dir, name))
}
