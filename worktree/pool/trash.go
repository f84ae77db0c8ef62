package pool

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
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
	return os.Rename(path, trashName(r, path, name))
}

// trashName returns a new name for a directory of the trash that path can be moved to.
func trashName(r *repo.Repo, path, name string) string {
	return filepath.Join(r.OwnDir(path), TrashPrefix+name+"-"+rand.Text())
}

// EmptyTrash deletes trashed directories, including those of other processes.
func EmptyTrash(r *repo.Repo) (failed error) {
	for _, dir := range r.WorktreeDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), TrashPrefix) {
				failed = errors.Join(failed, file.RemoveAll(filepath.Join(dir, entry.Name())))
			}
		}
	}
	return failed
}
