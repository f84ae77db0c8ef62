// Package scratch makes repositories for changes that are never kept. A scratch repository borrows the objects of
// another one. It has its own refs, worktrees and locks, so that nothing in it changes the other repository.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Branch is the branch of a scratch repository. It is not checked out.
const Branch = "scratch"

// inherited matches the settings that a scratch repository inherits. None of them names another repository.
const inherited = `^(user|author|committer|core|commit|i18n|filter|diff|merge|gpg|lfs|extensions)\.`

// Make makes a scratch repository in dir, which must not exist. Its only ref is Branch, which points to commit. It has no
// remote, and no files are checked out. The hooks and the attributes are those of r.
func Make(ctx context.Context, r *repo.Repo, dir, commit string) error {
	if err := write(ctx, r, filepath.Join(dir, ".git"), commit); err != nil {
		return fmt.Errorf("make a scratch repository: %w", err)
	}
	return nil
}

// IsComplete reports whether a repository has all files of a commit. A partial clone may lack some. They are not fetched.
func IsComplete(ctx context.Context, r *repo.Repo, commit string) (bool, error) {
	out, err := r.Git().Output(ctx, "rev-list", "--objects", "--no-walk", "--missing=print", commit)
	if err != nil {
		return false, fmt.Errorf("find missing files: %w", err)
	}
	return !strings.Contains("\n"+string(out), "\n?"), nil
}

func write(ctx context.Context, r *repo.Repo, to, commit string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(to, filepath.FromSlash(sub)), 0o700); err != nil {
			return err
		}
	}
	config, err := configOf(ctx, r)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"HEAD": commit + "\n", "config": config, "refs/heads/" + Branch: commit + "\n",
		"objects/info/alternates": filepath.Join(r.GitDir, "objects") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(to, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	var failed []error
	for _, name := range []string{"shallow", "info/attributes", "info/exclude"} {
		failed = append(failed, file.CopyIfExists(filepath.Join(r.GitDir, name), filepath.Join(to, name)))
	}
	return errors.Join(failed...)
}

// configOf returns the configuration of a scratch repository.
func configOf(ctx context.Context, r *repo.Repo) (string, error) {
	settings, err := git.Repo{Dir: r.GitDir}.Fields(ctx, "config", "-z", "--file", filepath.Join(r.GitDir, "config"), "--get-regexp", inherited)
	if err != nil && git.ExitCode(err) != 1 {
		return "", err
	}
	settings = slices.DeleteFunc(settings, func(setting string) bool {
		key, _, _ := strings.Cut(setting, "\n")
		return slices.Contains([]string{"core.worktree", "extensions.partialclone", "extensions.refstorage", "extensions.worktreeconfig"}, key)
	})
	first := "core.hookspath\n" + filepath.Join(r.GitDir, "hooks") // a later value takes precedence
	return git.ConfigText(append(append([]string{first}, settings...), "core.bare\nfalse", "gc.auto\n0")), nil
}
