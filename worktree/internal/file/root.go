package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// A Root is an open directory in which an agent may replace files and directories at any time. Its methods
// follow no links: not in the last element of a name, nor in the elements before. They therefore never reach
// a file outside the directory. Names have slashes. The error for a name behind a link or a file is Missing.
type Root struct{ dir *os.File }

// OpenRoot opens a directory. It must not be a link.
func OpenRoot(dir string) (*Root, error) {
	f, err := os.OpenFile(dir, directory|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	return &Root{f}, nil
}

// Close closes the directory.
func (r *Root) Close() error { return r.dir.Close() }

// Missing reports whether an error of a Root means that there is no file with this name.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// at calls do with the directory of a file and the last element of its name. It opens each directory
// from the one before, and follows none that has become a link.
func (r *Root) at(op, name string, do func(dir int, base string) error) error {
	if !filepath.IsLocal(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	dir, base := path.Split(path.Clean(name))
	fd, opened := int(r.dir.Fd()), false
	for element := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if element == "" {
			continue
		}
		next, err := openat(fd, element, directory, 0)
		if opened {
			_ = unix.Close(fd)
		}
		if err != nil {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
		fd, opened = next, true
	}
	err := do(fd, base)
	if opened {
		_ = unix.Close(fd)
	}
	if err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// openat opens a file in a directory. It does not follow a link or wait for a pipe.
func openat(dir int, base string, flags int, perm uint32) (fd int, err error) {
	for {
		fd, err = unix.Openat(dir, base, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// IsLink reports whether a file is a symbolic link.
func IsLink(st unix.Stat_t) bool { return kind(st) == unix.S_IFLNK }

// IsRegular reports whether a file is a regular file.
func IsRegular(st unix.Stat_t) bool { return kind(st) == unix.S_IFREG }

// IsDirectory reports whether a file is a directory.
func IsDirectory(st unix.Stat_t) bool { return kind(st) == unix.S_IFDIR }

func kind(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT } //nolint:unconvert // the type differs on macOS

// Lstat describes a file.
func (r *Root) Lstat(name string) (st unix.Stat_t, err error) {
	err = r.at("lstat", name, func(dir int, base string) error {
		return unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return st, err
}

// Open opens a regular file for reading.
func (r *Root) Open(name string) (*os.File, error) {
	f, err := r.open(name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: regularfile.ErrNotFile}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of a regular file of at most limit bytes.
func (r *Root) Read(name string, limit int64) ([]byte, error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: &regularfile.SizeError{Max: limit}}
	}
	return raw, err
}

// Create creates a file. It fails if the name is in use.
func (r *Root) Create(name string, perm fs.FileMode) (*os.File, error) {
	return r.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, uint32(perm.Perm()))
}

func (r *Root) open(name string, flags int, perm uint32) (f *os.File, err error) {
	err = r.at("open", name, func(dir int, base string) error {
		fd, err := openat(dir, base, flags, perm)
		if err == nil {
			f = os.NewFile(uintptr(fd), name)
		}
		return err
	})
	return f, err
}

// EndPipe ends a named pipe for the processes that wait to read it, as if it were an empty file. It reports whether
// there was one.
func (r *Root) EndPipe(name string) bool {
	f, err := r.open(name, unix.O_WRONLY, 0) // fails if no process reads it
	if err != nil {
		return false
	}
	info, err := f.Stat()
	return f.Close() == nil && err == nil && info.Mode().Type() == fs.ModeNamedPipe
}

// Readlink returns the target of a link.
func (r *Root) Readlink(name string) (target string, err error) {
	err = r.at("readlink", name, func(dir int, base string) error {
		buffer := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(dir, base, buffer)
		if errors.Is(err, unix.EINVAL) {
			return regularfile.ErrNotFile // it is no longer a link
		}
		target = string(buffer[:max(n, 0)])
		return err
	})
	return target, err
}

// Symlink creates a link. It fails if the name is in use.
func (r *Root) Symlink(target, name string) error {
	return r.at("symlink", name, func(dir int, base string) error { return unix.Symlinkat(target, dir, base) })
}

// MkdirAll creates a directory and those above it, unless they exist.
func (r *Root) MkdirAll(name string, perm fs.FileMode) error {
	err := r.at("mkdir", name, func(dir int, base string) error {
		err := unix.Mkdirat(dir, base, uint32(perm.Perm()))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		fd, err := openat(dir, base, directory, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	if parent := path.Dir(name); errors.Is(err, fs.ErrNotExist) && parent != "." {
		if err = r.MkdirAll(parent, perm); err == nil {
			err = r.MkdirAll(name, perm)
		}
	}
	return err
}
