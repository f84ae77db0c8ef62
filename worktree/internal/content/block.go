package content

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
)

// Blocking lists the files that a move between two trees would overwrite and that have no index entry: their
// content exists nowhere else. git itself protects only files that are not ignored.
func Blocking(ctx context.Context, ix *Index, from, to string) ([]string, error) {
	changes, err := ix.Git.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, change := range changes {
		if change.Status == 'D' || change.Mode == object.ModeSubmodule {
			continue
		}
		files, err := InTheWay(ix.Git.WorkTree, change.Path)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	if len(found) == 0 {
		return nil, nil
	}
	tracked, err := ix.Git.Fields(ctx, "ls-files", "-z", "-c")
	return without(found, tracked), err
}

// InTheWay lists the files at or below a path. If one of the path's directories is a file, it lists that
// file. Paths are relative to top.
func InTheWay(top, name string) ([]string, error) {
	elements := strings.Split(name, "/")
	for i := range elements {
		prefix := strings.Join(elements[:i+1], "/")
		info, err := os.Lstat(filepath.Join(top, prefix))
		switch {
		case err != nil && os.IsNotExist(err):
			return nil, nil
		case err != nil:
			return nil, err
		case !info.IsDir():
			return []string{prefix}, nil
		}
	}
	return FilesBelow(top, name)
}

// FilesBelow lists the files and symbolic links in a directory, recursively. It skips git directories.
func FilesBelow(top, dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(top, dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file.IsGitDir(entry.Name()) {
			return fs.SkipDir
		}
		if kind := entry.Type(); kind.IsRegular() || kind == fs.ModeSymlink {
			relative, err := filepath.Rel(top, name)
			files = append(files, path.Clean(filepath.ToSlash(relative)))
			return err
		}
		return nil
	})
	return files, err
}
