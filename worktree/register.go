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

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
)

// A registration makes W a worktree of git, without its files. Two ways lead there: `git worktree
// add`, and for a repository that is read in process the same files written by coven, because
// git would start three processes. See gitrepository-layout(5).
type registration struct {
	w     *Worktree
	start string // the commit of the new branch; empty: the branch exists
	// admin is called with the name of the git directory in GitDir/worktrees, before that exists
	// if coven makes it.
	admin func(name string) error
}

// register requires the lock of the worktrees.
func (r *Repo) register(ctx context.Context, reg registration) error {
	if !r.git().ReadInProcess() {
		return r.registerByGit(ctx, reg)
	}
	if reg.start != "" {
		branch := git.Create(headsPrefix+reg.w.Branch, reg.start)
		if err := r.transact(ctx, r.git(), "branch: created by coven", branch); err != nil {
			return err
		}
	}
	failpoint.Point("register.branch")
	dir, err := r.newAdmin(reg)
	if err != nil {
		return err
	}
	failpoint.Point("register.admin")
	// While the file "locked" is there, `git worktree prune` leaves the directory alone.
	for _, f := range []struct{ name, content string }{
		{"locked", "coven is adding this worktree\n"},
		{"gitdir", filepath.Join(reg.w.Path, ".git") + "\n"},
		{"commondir", "../..\n"},
		{"HEAD", "ref: " + headsPrefix + reg.w.Branch + "\n"},
	} {
		if err := file.WriteNoSync(filepath.Join(dir, f.name), []byte(f.content)); err != nil { // a git that runs beside reads all or nothing
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

// newAdmin makes a directory in GitDir/worktrees with a name that is free.
func (r *Repo) newAdmin(reg registration) (string, error) {
	all := filepath.Join(r.GitDir, "worktrees")
	if err := os.MkdirAll(all, 0o755); err != nil {
		return "", err
	}
	for n := 0; ; n++ {
		name := reg.w.name
		if n > 0 {
			name += strconv.Itoa(n)
		}
		dir := filepath.Join(all, name)
		if file.Exists(dir) {
			continue // a user's worktree can have the name
		}
		if err := reg.admin(name); err != nil {
			return "", err
		}
		if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
	}
}

// registerByGit runs `git worktree add`.
func (r *Repo) registerByGit(ctx context.Context, reg registration) error {
	before, err := r.admins()
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "--quiet", "--no-checkout"}
	var edits []git.Edit
	if reg.start == "" {
		args = append(args, "--force", reg.w.Path, reg.w.Branch)
	} else {
		args = append(args, "--no-track", "-b", reg.w.Branch, reg.w.Path, reg.start)
		edits = append(edits, git.Set(headsPrefix+reg.w.Branch, reg.start))
	}
	if err := r.logRefs(edits...); err != nil {
		return err
	}
	if err := r.git().Run(ctx, args...); err != nil {
		return r.explained(ctx, err, headsPrefix+reg.w.Branch)
	}
	r.logDone(edits)
	after, err := r.admins()
	if err != nil {
		return err
	}
	for _, admin := range after {
		if !slices.Contains(before, admin) && r.adminPath(admin) == reg.w.Path {
			return errors.Join(reg.admin(admin), r.unsparse(ctx, admin))
		}
	}
	return fmt.Errorf("git worktree add did not create %s", reg.w.name)
}
