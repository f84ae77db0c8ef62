package integrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// A GitlinkError means that a submodule's new commit exists only in the task's worktree. It would be lost
// with the worktree, and the target would refer to a missing commit.
type GitlinkError struct {
	Path, Commit string
	Next         string // the command that keeps the commit; may be empty
}

func (e *GitlinkError) Error() string {
	text := fmt.Sprintf("submodule %s names commit %.12s, which exists only in the task's worktree; push it to the submodule's remote and fetch it", e.Path, e.Commit)
	if e.Next == "" {
		return text + " there"
	}
	return text + ", or keep it here: " + e.Next
}

// gitlinksExist checks that each submodule commit that a candidate adds exists in the main checkout's
// submodule, or on a remote branch of the worktree's submodule.
func gitlinksExist(ctx context.Context, w *repo.Worktree, c Landing) error {
	changes, err := w.Repo.Git().Changes(ctx, c.Old, c.Tree)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.Mode != object.ModeSubmodule || change.Status == 'D' || moved(changes, change) {
			continue
		}
		known, err := submoduleHas(ctx, w, change)
		if err != nil {
			return err
		}
		if !known {
			next, err := keepGitlink(ctx, w, c, change)
			if err != nil {
				return err
			}
			return &GitlinkError{Path: change.Path, Commit: change.Oid, Next: next}
		}
	}
	return nil
}

// moved reports whether a submodule's commit was at another path before.
func moved(changes []object.Change, link object.Change) bool {
	return slices.ContainsFunc(changes, func(c object.Change) bool {
		return c.OldMode == object.ModeSubmodule && c.OldOid == link.Oid
	})
}

// keepGitlink returns the command that fetches a submodule's commit into a branch of the main checkout's
// submodule. It returns "" if there is no such submodule.
func keepGitlink(ctx context.Context, w *repo.Worktree, c Landing, change object.Change) (string, error) {
	main := filepath.Join(w.Repo.Root, change.Path)
	fetch := fmt.Sprintf("git -C %s fetch %s %s:refs/heads/%s", shellword.Quote(main), shellword.Quote(filepath.Join(w.Path, change.Path)), change.Oid, w.Branch)
	if _, ok := ownSubmodule(w.Repo, change.Path); ok {
		return fetch, nil
	}
	before, err := w.Repo.Git().Entries(ctx, c.Old, change.Path)
	if err != nil || len(before) != 1 || before[0].Mode != object.ModeSubmodule {
		return "", err
	}
	return fmt.Sprintf("git -C %s submodule update --init -- %s && %s", shellword.Quote(w.Repo.Root), shellword.Quote(change.Path), fetch), nil
}

func submoduleHas(ctx context.Context, w *repo.Worktree, change object.Change) (bool, error) {
	if change.Path == names.WorktreesDir || strings.HasPrefix(change.Path, names.WorktreesDir+"/") {
		return false, nil // agents create repositories there
	}
	if dir, ok := ownSubmodule(w.Repo, change.Path); ok {
		g := git.Repo{Dir: dir, Env: []string{"GIT_NO_LAZY_FETCH=1"}}
		if has, err := g.Has(ctx, change.Oid, "commit"); has || ctx.Err() != nil {
			return has, err
		}
	}
	dir, ok := submodule.Dir(filepath.Join(w.Path, change.Path))
	if !ok {
		return false, nil
	}
	return onRemote(ctx, w.Repo, dir, change.Oid)
}

// ownSubmodule returns the git directory of a submodule in the main checkout. The settings of a submodule
// can name programs that git runs, and a path chosen by an agent can lead into a task's worktree. Therefore
// it rejects directories in the agents' worktrees, and paths through symbolic links.
func ownSubmodule(r *repo.Repo, path string) (string, bool) {
	top := filepath.Join(r.Root, path)
	dir, ok := submodule.Dir(top)
	if !ok {
		return "", false
	}
	root, err := filepath.EvalSymlinks(r.Root)
	if err != nil {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(top); err != nil || real != filepath.Join(root, path) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	agents := append(r.WorktreeDirs(), filepath.Join(root, names.WorktreesDir))
	if own := r.RootGit().Dir; !r.Bare || !strings.HasPrefix(real, own+"/") { // Root's registration contains its own submodules
		agents = append(agents, filepath.Join(r.GitDir, "worktrees"))
	}
	if slices.ContainsFunc(agents, func(at string) bool { return strings.HasPrefix(real+"/", at+"/") }) {
		return "", false
	}
	return dir, true
}

// onRemote reports whether a commit of the submodule in dir is on a remote branch, as of the last fetch or
// push. The agent controls dir, so git reads only its objects, with the settings of the main repository.
func onRemote(ctx context.Context, r *repo.Repo, dir, oid string) (bool, error) {
	tips, err := remoteTips(dir)
	if err != nil || len(tips) == 0 || slices.Contains(tips, oid) {
		return len(tips) > 0 && err == nil, err
	}
	g := r.Git()
	g.Env = []string{"GIT_NO_LAZY_FETCH=1", "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strconv.Quote(filepath.Join(dir, "objects"))}
	asked := oid + "\n^" + strings.Join(tips, "\n^") + "\n"
	above, err := g.Feed(ctx, []byte(asked), "rev-list", "--max-count=1", "--stdin")
	if git.ExitCode(err) > 0 {
		return false, nil // some of the commits do not exist
	}
	return len(above) == 0 && err == nil, err
}

// remoteTips returns the commits of a repository's remote branches. It only reads files.
func remoteTips(dir string) ([]string, error) {
	var tips []string
	add := func(oid string) {
		if object.IsID(oid) {
			tips = append(tips, oid)
		}
	}
	if packed, err := object.ReadPackedRefs(dir); err == nil {
		for name, oid := range packed {
			if strings.HasPrefix(name, "refs/remotes/") {
				add(oid)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, "refs", "remotes"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if raw, err := file.Read(path, object.MaxGitFile); err == nil {
			add(strings.TrimSpace(string(raw)))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return tips, err
}
