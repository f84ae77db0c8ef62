package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/sparse"
)

// A registration makes a directory a git worktree without files. coven either runs `git worktree add` or,
// if the repository is read in process, writes the same files itself, because git would start three
// processes. See gitrepository-layout(5).
type registration struct {
	w     *repo.Worktree
	start string // the commit of the new branch, empty if the branch exists
	// admin is called with the name of the git directory in GitDir/worktrees. If coven creates that
	// directory itself, it calls admin first.
	admin func(name string) error
}

// register registers a worktree. The caller must hold the worktrees lock.
func register(ctx context.Context, r *repo.Repo, reg registration) error {
	if !r.Git().ReadInProcess() {
		return registerByGit(ctx, r, reg)
	}
	if reg.start != "" {
		branch := ref.Create(names.HeadsPrefix+reg.w.Branch, reg.start)
		if err := r.Transact(ctx, r.Git(), "branch: created by coven", branch); err != nil {
			return err
		}
	}
	failpoint.Point("register.branch")
	making, err := makeAdmin(reg.w)
	if err != nil {
		return err
	}
	failpoint.Point("register.files")
	dir, err := placeAdmin(r, reg, making)
	if err != nil {
		return err
	}
	failpoint.Point("register.admin")
	if err := os.MkdirAll(reg.w.Path, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(reg.w.Path, ".git"), []byte("gitdir: "+dir+"\n"), 0o644); err != nil {
		return err
	}
	failpoint.Point("register.linked")
	return os.Remove(filepath.Join(dir, "locked"))
}

// makeAdmin creates the git directory of a worktree in coven's part of the repository's. While it contains the file
// "locked", `git worktree prune` does not remove it.
func makeAdmin(w *repo.Worktree) (string, error) {
	making := w.StatePath("admin")
	if err := errors.Join(file.RemoveAll(making), os.MkdirAll(making, 0o755)); err != nil { // a killed process may have left it
		return "", err
	}
	for name, content := range map[string]string{
		"gitdir":    filepath.Join(w.Path, ".git"),
		"commondir": "../..",
		"HEAD":      "ref: " + names.HeadsPrefix + w.Branch,
		"locked":    "coven is adding this worktree",
	} {
		if err := os.WriteFile(filepath.Join(making, name), []byte(content+"\n"), 0o644); err != nil {
			return "", err
		}
	}
	return making, nil
}

// placeAdmin moves a complete git directory to GitDir/worktrees, under an unused name. git would at any time remove one that is
// neither complete nor locked, and the directory of all worktrees when it is empty.
func placeAdmin(r *repo.Repo, reg registration, making string) (string, error) {
	all := filepath.Join(r.GitDir, "worktrees")
	for n := 0; ; n++ {
		name := reg.w.Name
		if n > 0 {
			name += strconv.Itoa(n)
		}
		dir := filepath.Join(all, name)
		if file.Exists(dir) {
			continue // a user's worktree may have the name
		}
		if err := errors.Join(os.MkdirAll(all, 0o755), reg.admin(name)); err != nil {
			return "", err
		}
		if err := file.Move(making, dir); !errors.Is(err, fs.ErrExist) && (!errors.Is(err, fs.ErrNotExist) || !file.Exists(making)) {
			return dir, err
		}
	}
}

// registerByGit runs `git worktree add`.
func registerByGit(ctx context.Context, r *repo.Repo, reg registration) error {
	before, err := r.Admins()
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--quiet", "--no-checkout"}
	var edits []ref.Edit
	if reg.start == "" {
		args = append(args, "--force", reg.w.Path, reg.w.Branch)
	} else {
		args = append(args, "--no-track", "-b", reg.w.Branch, reg.w.Path, reg.start)
		edits = append(edits, ref.Set(names.HeadsPrefix+reg.w.Branch, reg.start))
	}
	if err := r.RefLog().Begin(edits...); err != nil {
		return err
	}
	if err := r.Git().Run(ctx, args...); err != nil {
		return r.Explain(ctx, err, names.HeadsPrefix+reg.w.Branch)
	}
	r.RefLog().Done(edits)
	after, err := r.Admins()
	if err != nil {
		return err
	}
	for _, admin := range after {
		if !slices.Contains(before, admin) && r.AdminPath(admin) == reg.w.Path {
			return errors.Join(reg.admin(admin), sparse.Disable(ctx, r, admin))
		}
	}
	return fmt.Errorf("git worktree add did not create %s", reg.w.Name)
}
