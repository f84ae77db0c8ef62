package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/tmpl"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// environment puts the secrets into the variables of a step, and adds those that
// its command uses by themselves.
func (s *site) environment(env, secrets []string) ([]string, error) {
	var all []string
	for _, kv := range env {
		plain, err := tmpl.Reveal(kv, s.secrets.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, plain)
	}
	for _, name := range secrets {
		value, err := s.secrets.Value(name)
		if err != nil {
			return nil, err
		}
		all = append(all, tmpl.SecretVariable(name)+"="+value)
	}
	return all, nil
}

// dir is the directory of a step, inside the worktree: no link leads out.
func (s *site) dir(dir string) (string, error) {
	root, err := filepath.EvalSymlinks(s.worktree.Path)
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

// diff is what the worktree changes now.
func (s *site) diff(ctx context.Context) (worktree.Diff, error) {
	target, err := s.repo.Target(ctx, s.target.Branch)
	if err != nil {
		return worktree.Diff{}, err
	}
	return s.worktree.Diff(ctx, target.Tip)
}
