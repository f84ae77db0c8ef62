// Package plain opens files that are files. What a repository has under the name of
// one may be a pipe: whoever opens that would wait for somebody to write.
package plain

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// ErrNotFile says that there is something else than a file.
var ErrNotFile = errors.New("it is not a file")

const reading = os.O_RDONLY | syscall.O_NONBLOCK

// Open opens a file to read it, with further flags of package syscall.
func Open(file string, flags ...int) (*os.File, error) {
	all := reading
	for _, flag := range flags {
		all |= flag
	}
	f, err := os.OpenFile(file, all, 0)
	if err != nil {
		return nil, err
	}
	return checked(f)
}

// OpenIn is Open of a file in a directory: no link leads out of that.
func OpenIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(name, reading, 0)
	if err != nil {
		return nil, err
	}
	return checked(f)
}

// FS are the files of a directory in a root: no link leads out of the root, and no
// pipe is waited for.
func FS(root *os.Root, dir string) fs.FS { return files{root, dir} }

type files struct {
	root *os.Root
	dir  string
}

// Open implements fs.FS. It opens files, and directories to list them.
func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := f.root.OpenFile(path.Join(f.dir, name), reading, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = ErrNotFile
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Stat implements fs.StatFS, of whatever there is.
func (f files) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.Stat(path.Join(f.dir, name))
}

func checked(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
