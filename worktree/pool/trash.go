package pool

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// TrashPrefix is the prefix of the names of directories to delete.
const TrashPrefix = ".trash-" // not the beginning of any SafeName

// Trash renames a directory, because deleting it can take a long time.
func Trash(r *repo.Repo, path, name string) error {
	if !file.Exists(path) {
		return nil
	}
	if err := file.CheckNotMounted(path); err != nil {
		return err
	}
	return os.Rename(path, trashName(r, name))
}

func trashName(r *repo.Repo, name string) string {
	return filepath.Join(r.Root, names.WorktreesDir, TrashPrefix+name+"-"+rand.Text())
}

// EmptyTrash deletes trashed directories, including those of other processes.
func EmptyTrash(r *repo.Repo) error {
	dir := filepath.Join(r.Root, names.WorktreesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), TrashPrefix) {
			err = errors.Join(err, file.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
