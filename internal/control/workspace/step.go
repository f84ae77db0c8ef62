package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/text/tmpl"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree/diff"
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
	target, err := s.Repo.Target(ctx, s.Target.Ref)
	if err != nil {
		return diff.Diff{}, err
	}
	return diff.Of(ctx, s.Worktree, target.Tip)
}

// Start returns the commit from which the change starts.
func (s *Workspace) Start(ctx context.Context) (string, error) {
	target, err := s.Repo.Target(ctx, s.Target.Ref)
	if err != nil {
		return "", err
	}
	start, err := s.Worktree.Start(ctx, target.Tip)
	return start.Commit, err
}

// FileBefore returns the content of a file, of at most max bytes, in the commit from which the change starts. Its errors
// are those of diff.FileIn.
func (s *Workspace) FileBefore(ctx context.Context, path string, max int64) ([]byte, error) {
	start, err := s.Start(ctx)
	if err != nil {
		return nil, err
	}
	return diff.FileIn(ctx, s.Repo, start, path, max)
}
