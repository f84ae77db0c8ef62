// Package regularfile opens only regular files and limits their size. In a repository, an
// expected file may be a pipe whose reader would block, a link out of the
// repository, or larger than memory.
package regularfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotFile means that the name belongs to something other than a regular file.
var ErrNotFile = errors.New("it is not a file")

// SizeError means that a file is larger than allowed.
type SizeError struct{ Max int64 }

// Error returns "it is larger than N bytes".
func (e *SizeError) Error() string { return fmt.Sprintf("it is larger than %d bytes", e.Max) }

// LinkError means that something other than a directory is in place of a directory.
type LinkError struct {
	Path string // relative to the root that was checked
	To   string // target of a symbolic link; otherwise empty
}

// Error names the path, and the target of a link.
func (e *LinkError) Error() string {
	if e.To == "" {
		return e.Path + " is not a directory"
	}
	return fmt.Sprintf("%s is a symbolic link (to %s); coven needs a directory there", e.Path, e.To)
}

const reading = os.O_RDONLY | syscall.O_NONBLOCK

// Open opens a file for reading, with additional flags of package syscall.
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

// OpenIn opens a file in a directory like Open. It does not follow links out of the
// directory.
func OpenIn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	return OpenAt(root, name)
}

// OpenAt opens a file in a root like Open. Unlike FS, it accepts names with arbitrary bytes.
func OpenAt(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, reading, 0)
	if err != nil {
		return nil, err
	}
	return checked(f)
}

// OpenFileIn opens or creates a file in a directory with flags of package os. It
// does not follow links out of the directory.
func OpenFileIn(dir, name string, flags int, mode fs.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(name, flags|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ENXIO) {
		err = ErrNotFile // a pipe without a reader
	}
	if err != nil {
		return nil, err
	}
	return checked(f)
}

// Read returns the content of a file of at most max bytes.
func Read(file string, max int64) ([]byte, error) {
	f, err := Open(file)
	if err != nil {
		return nil, err
	}
	return readAll(f, max)
}

// ReadIn reads a file in a directory like Read. It does not follow links out of the
// directory.
func ReadIn(dir, name string, max int64) ([]byte, error) {
	f, err := OpenIn(dir, name)
	if err != nil {
		return nil, err
	}
	return readAll(f, max)
}

func readAll(f *os.File, max int64) ([]byte, error) {
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > max {
		return nil, &SizeError{max}
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead)) // large enough to read without growing
	_, err = data.ReadFrom(io.LimitReader(f, max+1))
	if err == nil && int64(data.Len()) > max {
		err = &SizeError{max}
	}
	return data.Bytes(), err
}

// Cause returns the cause of an error of a file operation, without the operation and the path.
func Cause(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Directory checks that all existing elements of a path below root are directories.
// Otherwise the error is a *LinkError.
func Directory(root, path string) error {
	at := ""
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		at = filepath.Join(at, part)
		full := filepath.Join(root, at)
		info, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.IsDir():
			continue
		}
		to := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if to, err = os.Readlink(full); err != nil {
				return err
			}
		}
		return &LinkError{Path: at, To: to}
	}
	return nil
}

// FS returns the files of a directory in a root. It does not follow links out of the root
// and does not block on pipes.
func FS(root *os.Root, dir string) fs.FS { return files{root, dir} }

type files struct {
	root *os.Root
	dir  string
}

// Open implements fs.FS. It opens regular files, and directories for listing.
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

// Stat implements fs.StatFS, for files of any kind.
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
