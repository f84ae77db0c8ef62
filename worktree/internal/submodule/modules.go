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
	"github.com/coven-run/coven/worktree/internal/repo"
)

// ModulesDir is where a git directory has those of submodules.
const ModulesDir = "modules"

// ModulesOf returns where the git directories of the main checkout's submodules are.
func ModulesOf(r *repo.Repo) string { return filepath.Join(r.RootGit().Dir, ModulesDir) }

// Borrows reports whether a git directory of a submodule in W has nothing that would be lost with
// it: it is as populate makes it, and has no objects of its own. The main checkout has those.
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

// Lender returns the git directory from which another one borrows its objects: of a submodule of
// the main checkout.
func Lender(w *repo.Worktree, dir string) (string, bool) {
	raw, err := file.Read(filepath.Join(dir, "objects", "info", "alternates"), repo.MaxGitFile)
	from, ok := strings.CutSuffix(string(raw), "/objects\n")
	if err != nil || !ok || strings.Contains(from, "\n") || filepath.Clean(from) != from {
		return "", false
	}
	return from, strings.HasPrefix(from, ModulesOf(w.Repo)+"/")
}

// Dir finds a submodule's git directory without running git, because in a
// task's worktree the agent controls its settings.
func Dir(path string) (string, bool) {
	dotGit := filepath.Join(path, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return dotGit, true
	}
	raw, err := file.Read(dotGit, repo.MaxGitFile)
	dir, found := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if err != nil || !found {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, true
}

// IsOrdinary reports whether every git directory of a worktree may have this file, or coven handles
// it otherwise.
func IsOrdinary(name string) bool {
	switch name {
	case "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "AUTO_MERGE", "index", "gitdir", "commondir", "locked", "config.worktree",
		"logs", "refs", "info", "hooks", "modules", "description", names.PrivateDir, names.PrivateDir + ".new":
		return true
	}
	return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, ".") // unfinished, see file.WriteNoSync
}
