package pool

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// TrashPrefix is the prefix of the names of directories to delete.
const TrashPrefix = ".trash-" // not the beginning of any SafeName

// Trash renames a directory, because deleting it can take a long time. It deletes a directory on another file system than
// coven's, which has been there since before a change of settings.
func Trash(r *repo.Repo, path, name string) error {
	if !file.Exists(path) {
		return nil
	}
	if err := file.CheckNotMounted(path); err != nil {
		return err
	}
	err := r.EnsurePlace() // it may differ from that of the worktree
	if err == nil {
		err = os.Rename(path, trashName(r, path, name))
	}
	if errors.Is(err, syscall.EXDEV) || errors.Is(err, repo.ErrPlace) {
		return file.RemoveAll(path)
	}
	return err
}

// trashName returns a new name for a directory of the trash that path can be moved to.
func trashName(r *repo.Repo, path, name string) string {
	return filepath.Join(r.OwnDir(path), TrashPrefix+name+"-"+rand.Text())
}

// EmptyTrash deletes trashed directories, including those of other processes, but not those of other users.
func EmptyTrash(r *repo.Repo) (failed error) {
	for _, dir := range r.WorktreeDirs() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), TrashPrefix) && !r.IsForeign(filepath.Join(dir, entry.Name())) {
				failed = errors.Join(failed, file.RemoveAll(filepath.Join(dir, entry.Name())))
			}
		}
	}
	return failed
}
