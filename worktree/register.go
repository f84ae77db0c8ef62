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
	dir, err := newAdmin(r, reg)
	if err != nil {
		return err
	}
	failpoint.Point("register.admin")
	for _, f := range []struct{ name, content string }{
		{"gitdir", filepath.Join(reg.w.Path, ".git") + "\n"},
		{"commondir", "../..\n"},
		{"HEAD", "ref: " + names.HeadsPrefix + reg.w.Branch + "\n"},
	} {
		if err := file.WriteNoSync(filepath.Join(dir, f.name), []byte(f.content)); err != nil { // atomic for concurrent readers
			return err
		}
	}
	failpoint.Point("register.files")
	if err := os.MkdirAll(reg.w.Path, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(reg.w.Path, ".git"), []byte("gitdir: "+dir+"\n"), 0o644); err != nil {
		return err
	}
	failpoint.Point("register.linked")
	return os.Remove(filepath.Join(dir, "locked"))
}

// newAdmin creates a directory in GitDir/worktrees under an unused name. While it contains the file "locked",
// `git worktree prune` does not remove it.
func newAdmin(r *repo.Repo, reg registration) (string, error) {
	all := filepath.Join(r.GitDir, "worktrees")
	for n := 0; ; n++ {
		if err := os.MkdirAll(all, 0o755); err != nil { // git removes it when it is empty
			return "", err
		}
		name := reg.w.Name
		if n > 0 {
			name += strconv.Itoa(n)
		}
		dir := filepath.Join(all, name)
		if file.Exists(dir) {
			continue // a user's worktree may have the name
		}
		if err := reg.admin(name); err != nil {
			return "", err
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = file.WriteNoSync(filepath.Join(dir, "locked"), []byte("coven is adding this worktree\n"))
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) { // otherwise git has created or pruned it
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
