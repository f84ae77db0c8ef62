package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5"
)

// gitFiles is a git directory as go-git reads it. Those of go-billy look at each directory above a
// file whenever they open it, which takes them longer than to read a ref. It opens only
// regular files: to open a pipe that a program has put in the place of one would take forever.
// Nothing can be written.
type gitFiles struct{ dir string }

var _ billy.Filesystem = gitFiles{}

// at returns the path of a name, which must not lead out of the directory.
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
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrInvalid)
	}
	file, err := os.Open(path)
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

// ReadDir leaves out what is removed meanwhile.
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

func (gitFiles) Create(string) (billy.File, error)           { return nil, billy.ErrReadOnly }
func (gitFiles) TempFile(string, string) (billy.File, error) { return nil, billy.ErrReadOnly }
func (gitFiles) Rename(string, string) error                 { return billy.ErrReadOnly }
func (gitFiles) Remove(string) error                         { return billy.ErrReadOnly }
func (gitFiles) MkdirAll(string, fs.FileMode) error          { return billy.ErrReadOnly }
func (gitFiles) Symlink(string, string) error                { return billy.ErrReadOnly }

// Capabilities implements billy.Capable.
func (gitFiles) Capabilities() billy.Capability { return billy.ReadCapability | billy.SeekCapability }

// unlocked is an open file, which readers need not lock.
type unlocked struct{ *os.File }

func (unlocked) Lock() error   { return nil }
func (unlocked) Unlock() error { return nil }

// nowhere is a file system in which go-git finds no alternates.
type nowhere struct{ billy.Filesystem }

func (nowhere) Stat(string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
