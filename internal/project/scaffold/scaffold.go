// Package scaffold writes starting points for users: the protocol of plugins, and projects of new plugins.
package scaffold

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/proto"
)

// File is a file to write.
type File struct {
	Path       string // relative, with slashes
	Content    []byte
	Executable bool
}

// Protocol returns the .proto files of the plugin protocol, sorted by path.
func Protocol() ([]File, error) {
	var files []File
	err := fs.WalkDir(proto.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := proto.Files.ReadFile(path)
		files = append(files, File{Path: path, Content: content})
		return err
	})
	return files, err
}

// Written is the result for a file of Write.
type Written struct {
	Path      string // relative to the directory
	Unchanged bool   // it existed with this content
}

// DifferError reports that files exist with other content. Nothing was written.
type DifferError struct {
	Paths []string // with the directory
}

// Error implements error. It names the files.
func (e *DifferError) Error() string {
	are := "exist and differ"
	if len(e.Paths) == 1 {
		are = "exists and differs"
	}
	return strings.Join(e.Paths, ", ") + " " + are + ": nothing was written"
}

// CommandExit returns the exit code of a usage error.
func (e *DifferError) CommandExit() int { return exit.Usage }

// Write writes files below a directory, which it creates. If one of them exists with other content, it
// writes none and returns a *DifferError, unless force is set. It never overwrites a path that is not a
// regular file.
func Write(dir string, files []File, force bool) ([]Written, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, exit.Usagef("ls -ld "+shellword.Word(dir), "%s is not a directory", dir)
	}
	var written []Written
	var differ []string
	for _, f := range files {
		same, err := compare(filepath.Join(dir, filepath.FromSlash(f.Path)), f.Content)
		switch {
		case errors.Is(err, errDiffers):
			differ = append(differ, filepath.Join(dir, filepath.FromSlash(f.Path)))
		case err != nil:
			return nil, err
		}
		written = append(written, Written{Path: f.Path, Unchanged: same})
	}
	if len(differ) > 0 && !force {
		return nil, &DifferError{differ}
	}
	for i, f := range files {
		if written[i].Unchanged {
			continue
		}
		if err := write(filepath.Join(dir, filepath.FromSlash(f.Path)), f); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// Create writes files to a new directory, which appears with all of them or not at all. If a file or
// directory of that name exists, it writes nothing and returns a usage error.
func Create(dir string, files []File) error {
	exists := exit.Usagef("ls -ld "+shellword.Word(dir), "%s exists: nothing was written", dir)
	if _, err := os.Lstat(dir); err == nil {
		return exists
	}
	work, err := os.MkdirTemp(filepath.Dir(dir), ".coven-new-")
	if err != nil {
		return unwritable(dir, err)
	}
	defer os.RemoveAll(work)            //nolint:errcheck // a hidden directory may stay
	whole := filepath.Join(work, "new") // with the mode of the user's umask
	if _, err := Write(whole, files, false); err != nil {
		if cause := syscall.Errno(0); errors.As(err, &cause) {
			err = unwritable(dir, cause) // without the hidden directory
		}
		return err
	}
	if err := os.Rename(whole, dir); err != nil {
		if _, statErr := os.Lstat(dir); statErr == nil {
			return exists // another process has created it
		}
		return unwritable(dir, err)
	}
	return nil
}

// unwritable returns the usage error for a file that cannot be written. Its next command shows the nearest
// existing directory.
func unwritable(file string, err error) error {
	dir := filepath.Dir(file)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // the message names the file
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		err = link.Err
	}
	return exit.Usagef("ls -ld "+shellword.Word(dir), "write %s: %w", file, err)
}

// errDiffers means that a file exists with other content.
var errDiffers = errors.New("the file exists and differs")

// compare reports whether a file has the given content. The error is errDiffers if it has other content; a
// missing file is not an error.
func compare(file string, content []byte) (same bool, err error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, unwritable(file, err)
	case !info.Mode().IsRegular():
		return false, exit.Usagef("ls -ld "+shellword.Word(file), "%s is not a regular file", file)
	case info.Size() != int64(len(content)):
		return false, errDiffers
	}
	old, err := regularfile.Read(file, info.Size())
	if err != nil {
		return false, exit.Usagef("ls -l "+shellword.Word(file), "%w", err)
	}
	if !bytes.Equal(old, content) {
		return false, errDiffers
	}
	return true, nil
}

// write writes one file and the directories above it.
func write(file string, f File) error {
	mode := os.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return unwritable(file, err)
	}
	if err := regularfile.Replace(file, f.Content, mode); err != nil {
		return unwritable(file, err)
	}
	return nil
}
