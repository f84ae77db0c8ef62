package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/text/tmpl"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/remote"
)

// Environment inserts secrets into the variables of a step, and adds the secrets that its
// command refers to.
func (s *Workspace) Environment(env, secrets []string) ([]string, error) {
	var all []string
	for _, kv := range env {
		plain, err := tmpl.Reveal(kv, s.Secrets.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, plain)
	}
	for _, name := range secrets {
		value, err := s.Secrets.Value(name)
		if err != nil {
			return nil, err
		}
		all = append(all, tmpl.SecretVariable(name)+"="+value)
	}
	return all, nil
}

// Dir returns the directory of a step. It refuses links out of the worktree.
func (s *Workspace) Dir(dir string) (string, error) {
	root, err := filepath.EvalSymlinks(s.Worktree.Path)
	if err != nil {
		return "", fmt.Errorf("find the worktree: %w", err)
	}
	if dir == "" {
		return root, nil
	}
	inside, err := os.OpenRoot(root)
	if err != nil {
		return "", fmt.Errorf("open the worktree: %w", err)
	}
	defer inside.Close() //nolint:errcheck // read only
	info, err := inside.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", &runner.RefusedError{Reason: "workdir not found: " + dir}
	}
	return filepath.Join(root, dir), nil
}

// Diff returns the current change of the worktree.
func (s *Workspace) Diff(ctx context.Context) (diff.Diff, error) {
	target, err := s.Repo.Target(ctx, s.Target.Branch)
	if err != nil {
		return diff.Diff{}, err
	}
	return DiffOf(ctx, s.Repo, s.Worktree, target, s.Upstream, s.Base)
}

// DiffOf returns the change of a worktree that started from base, the tip of upstream. If upstream is
// empty, or its commits are in the target by now, the change is relative to the target. Otherwise it is
// relative to base, because the commits of upstream are not part of it.
func DiffOf(ctx context.Context, repo *worktree.Repo, tree *worktree.Worktree, target worktree.Target, upstream, base string) (diff.Diff, error) {
	if upstream == "" {
		return diff.Of(ctx, tree, target.Tip)
	}
	in, err := remote.Contains(ctx, repo, target.Tip, base)
	if err != nil {
		return diff.Diff{}, fmt.Errorf("compare %s with %s: %w", target.Branch, upstream, err)
	}
	if in {
		base = target.Tip
	}
	return diff.Of(ctx, tree, base)
}
