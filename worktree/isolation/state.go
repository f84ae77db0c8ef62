package isolation

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// ReadState reads refs, configuration and hooks. It reads only the files that have changed since the last
// call.
func ReadState(ctx context.Context, r *repo.Repo, hooks []string) (protected.State, error) {
	from := protected.Source{
		GitDir: r.GitDir, Root: r.Root, Hooks: hooks,
		Skip: append(r.WorktreeDirs(), filepath.Join(r.GitDir, "coven")),
	}
	if file.Exists(filepath.Join(r.GitDir, "reftable")) {
		from.Refs = func() (map[string]string, error) { return ListedRefs(ctx, r) }
	}
	r.Memo.Mu.Lock()
	last := r.Memo.State
	r.Memo.Mu.Unlock()
	now, err := protected.Read(from, last)
	if err == nil {
		r.Memo.Mu.Lock()
		r.Memo.State = now
		r.Memo.Mu.Unlock()
	}
	return now, err
}

// ListedRefs lists the refs with git, for repositories in which refs are not files.
func ListedRefs(ctx context.Context, r *repo.Repo) (map[string]string, error) {
	out, err := r.Git().Output(ctx, "for-each-ref", "--format=%(objectname) %(refname) %(symref)")
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		oid, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, target, _ := strings.Cut(rest, " ")
		refs[name] = oid
		if target != "" {
			refs[name] = "ref: " + target
		}
	}
	branch, err := r.HeadOf(ctx, r.GitDir)
	if err == nil {
		refs["HEAD"] = "ref: " + branch
		return refs, nil
	}
	if refs["HEAD"], err = r.Git().Line(ctx, "rev-parse", "--verify", "HEAD"); err != nil {
		delete(refs, "HEAD") // HEAD is unborn or broken
	}
	return refs, nil
}

// HookDirs returns the hooks directories: the default one, and the configured one. Only git can evaluate
// the setting, so HookDirs runs git when the repository's configuration has changed.
func HookDirs(ctx context.Context, r *repo.Repo) ([]string, error) {
	config, err := file.ReadIfExists(filepath.Join(r.GitDir, "config"))
	if err != nil {
		return nil, err
	}
	known := r.Memo
	known.Mu.Lock()
	defer known.Mu.Unlock()
	if known.Dirs != nil && known.Config == config {
		return known.Dirs, nil
	}
	settings, err := r.Git().Configured(ctx, `^core\.hookspath$`, true)
	if err != nil {
		return nil, fmt.Errorf("find the hooks: %w", err)
	}
	dirs := []string{filepath.Join(r.GitDir, "hooks")}
	for _, s := range settings {
		switch {
		case s.Value == "" || s.Value == "/dev/null":
		case filepath.IsAbs(s.Value):
			dirs = append(dirs, filepath.Clean(s.Value))
		default:
			dirs = append(dirs, filepath.Join(r.Root, s.Value))
		}
	}
	known.Config, known.Dirs = config, dirs
	return dirs, nil
}
