package find

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/permission"
)

// maxRead limits the number of directory entries to read.
const maxRead = 20_000

type listing struct {
	Path string `json:"path"`
}

func (o Options) ls(_ context.Context, in listing) (string, error) {
	at, err := o.place(in.Path)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return "", fmt.Errorf("open the worktree: %w", err)
	}
	defer root.Close() //nolint:errcheck // read only
	entries, more, err := readDir(root, at)
	if err != nil {
		return "", fmt.Errorf("path: %s cannot be listed: %w", printable(in.Path), err)
	}
	shown := o.shown(permission.FileRead)
	var lines []string
	for _, e := range entries {
		name := filepath.ToSlash(filepath.Join(at, e.Name()))
		if shown(name) {
			lines = append(lines, describe(root, name, e))
		}
	}
	text := list(lines, "(the directory is empty)", "list a directory below")
	if more {
		text += fmt.Sprintf("\n(only %d entries were read)", maxRead)
	}
	return text, nil
}

// readDir returns the entries of a directory, sorted by name. more reports whether there are further ones.
func readDir(root *os.Root, name string) (entries []fs.DirEntry, more bool, err error) {
	dir, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, false, errNotDirectory
	}
	if err != nil {
		return nil, false, regularfile.Cause(err)
	}
	defer dir.Close() //nolint:errcheck // read only
	entries, err = dir.ReadDir(maxRead + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, regularfile.Cause(err)
	}
	if more = len(entries) > maxRead; more {
		entries = entries[:maxRead]
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// describe formats an entry as one line. It opens no file.
func describe(root *os.Root, name string, e fs.DirEntry) string {
	shown := printable(e.Name())
	switch {
	case e.IsDir():
		return shown + "/"
	case e.Type()&fs.ModeSymlink != 0:
		to, err := root.Readlink(name)
		if err != nil {
			return shown + " -> ?"
		}
		return shown + " -> " + printable(to)
	case !e.Type().IsRegular():
		return shown + " (not a file)"
	}
	info, err := root.Lstat(name)
	if err != nil {
		return shown
	}
	return fmt.Sprintf("%s\t%d", shown, info.Size())
}
