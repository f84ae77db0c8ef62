package content

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
)

// blockers lists the files in a checkout that the changes would overwrite and that are not in its index:
// their content exists nowhere else. git itself protects only files that are not ignored.
func blockers(ctx context.Context, g git.Repo, changes []object.Change) ([]string, error) {
	var found []string
	for _, change := range changes {
		if change.Status == 'D' || change.Mode == object.ModeSubmodule {
			continue
		}
		files, err := InTheWay(g.WorkTree, change.Path)
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	if len(found) == 0 {
		return nil, nil
	}
	tracked, err := g.Fields(ctx, "ls-files", "-z", "-c")
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
