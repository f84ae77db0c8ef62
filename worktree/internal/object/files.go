package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// gitFiles is a read-only file system on a git directory for go-git. go-billy's own file systems examine
// every parent directory whenever they open a file, which takes longer than reading a ref. gitFiles opens
// only regular files: opening a pipe that a program has put in place of a file would block forever.
type gitFiles struct{ dir string }

var _ billy.Filesystem = gitFiles{}

// at returns the path of a name, which must be inside the directory.
func (f gitFiles) at(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: %w", name, billy.ErrCrossedBoundary)
	}
	return filepath.Join(f.dir, name), nil
}

func (f gitFiles) Open(name string) (billy.File, error) {
	return f.OpenFile(name, os.O_RDONLY, 0)
}

func (f gitFiles) OpenFile(name string, flag int, _ fs.FileMode) (billy.File, error) {
	if flag != os.O_RDONLY {
		return nil, billy.ErrReadOnly
	}
	path, err := f.at(name)
	if err != nil {
		return nil, err
	}
	file, err := regularfile.Open(path)
	if errors.Is(err, regularfile.ErrNotFile) {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	return unlocked{file}, nil
}

func (f gitFiles) Stat(name string) (fs.FileInfo, error) {
	path, err := f.at(name)
	if err != nil {
		return nil, err
	}
	return os.Stat(path)
}

func (f gitFiles) Lstat(name string) (fs.FileInfo, error) {
	path, err := f.at(name)
	if err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

func (f gitFiles) Readlink(name string) (string, error) {
	path, err := f.at(name)
	if err != nil {
		return "", err
	}
	return os.Readlink(path)
}

// ReadDir omits files that are removed while it runs.
func (f gitFiles) ReadDir(name string) ([]fs.FileInfo, error) {
	path, err := f.at(name)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	infos := make([]fs.FileInfo, 0, len(entries))
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (f gitFiles) Chroot(name string) (billy.Filesystem, error) {
	path, err := f.at(name)
	return gitFiles{path}, err
}

func (f gitFiles) Root() string { return f.dir }

func (gitFiles) Join(elem ...string) string { return filepath.Join(elem...) }

func (gitFiles) Create(string) (billy.File, error) { return nil, billy.ErrReadOnly }

func (gitFiles) TempFile(string, string) (billy.File, error) { return nil, billy.ErrReadOnly }

func (gitFiles) Rename(string, string) error { return billy.ErrReadOnly }

func (gitFiles) Remove(string) error { return billy.ErrReadOnly }

func (gitFiles) MkdirAll(string, fs.FileMode) error { return billy.ErrReadOnly }

func (gitFiles) Symlink(string, string) error { return billy.ErrReadOnly }

// Capabilities implements billy.Capable.
func (gitFiles) Capabilities() billy.Capability { return billy.ReadCapability | billy.SeekCapability }

// unlocked is an open file whose Lock does nothing: readers need no lock.
type unlocked struct{ *os.File }

func (unlocked) Lock() error { return nil }

func (unlocked) Unlock() error { return nil }

// nowhere is a file system in which no file exists, so that go-git finds no alternates.
type nowhere struct{ billy.Filesystem }

func (nowhere) Stat(string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
