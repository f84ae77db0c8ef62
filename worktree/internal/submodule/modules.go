package submodule

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// ModulesDir is the directory with the git directories of submodules inside a git directory.
const ModulesDir = "modules"

// ModulesOf returns the directory with the git directories of the main checkout's submodules.
func ModulesOf(r *repo.Repo) string { return filepath.Join(r.Supplier().RootGit().Dir, ModulesDir) }

// Borrows reports whether the git directory of a submodule in the worktree can be deleted without loss: it
// is as package supply created it, and has no objects of its own, because it borrows those of the main
// checkout.
func Borrows(w *repo.Worktree, dir string) bool {
	from, ok := Lender(w, dir)
	entries, err := os.ReadDir(dir)
	if !ok || err != nil || !file.Exists(from) {
		return false
	}
	made := []string{"config", "objects", "packed-refs", "shallow"}
	for _, entry := range entries {
		if !IsOrdinary(entry.Name()) && !slices.Contains(made, entry.Name()) {
			return false
		}
	}
	objects := filepath.Join(dir, "objects")
	own := errors.New("there is an object")
	return filepath.WalkDir(objects, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == filepath.Join(objects, "info") && entry.IsDir():
			return fs.SkipDir
		case !entry.IsDir():
			return own
		}
		return nil
	}) == nil
}

// Lender returns the git directory from which dir borrows its objects. The bool reports whether it belongs
// to a submodule of the main checkout.
func Lender(w *repo.Worktree, dir string) (string, bool) {
	raw, err := file.Read(filepath.Join(dir, "objects", "info", "alternates"), object.MaxGitFile)
	from, ok := strings.CutSuffix(string(raw), "/objects\n")
	if err != nil || !ok || strings.Contains(from, "\n") || filepath.Clean(from) != from {
		return "", false
	}
	return from, strings.HasPrefix(from, ModulesOf(w.Repo)+"/")
}

// Dir finds the git directory of a submodule. It does not run git, because in a task's worktree the agent
// controls git's settings.
func Dir(path string) (string, bool) {
	dotGit := filepath.Join(path, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return dotGit, true
	}
	raw, err := file.Read(dotGit, object.MaxGitFile)
	dir, found := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if err != nil || !found {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, true
}

// IsOrdinary reports whether any git directory of a worktree may contain this file, or coven handles the
// file separately.
func IsOrdinary(name string) bool {
	switch name {
	case "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "AUTO_MERGE", "index", "gitdir", "commondir", "locked", "config.worktree",
		"logs", "refs", "info", "hooks", "modules", "description", names.PrivateDir, names.PrivateDir + ".new":
		return true
	}
	return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, ".") // a temporary file of file.WriteNoSync
}
