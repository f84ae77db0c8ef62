package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/ending"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// Names of hooks and of their files.
const (
	PreCommit     = "pre-commit"
	PrepareMsg    = "prepare-commit-msg"
	CommitMsg     = "commit-msg"
	PostCommit    = "post-commit"
	maxMessage    = 1 << 20
	messageFile   = "COMMIT_EDITMSG"
	hookIndexFile = "coven-hook-index"
)

// A Hook is a commit hook to run. It must be sandboxed, because its code comes from the repository or the
// agent.
type Hook struct {
	Name string   // pre-commit
	Path string   // the script
	Args []string // arguments
	Dir  string   // working directory: the worktree
	Env  []string // KEY=VALUE, in addition to the runner's environment
	// Input is the hook's standard input.
	Input []byte
}

// A HookRunner runs a hook and returns its output. An error means that the hook failed.
type HookRunner func(ctx context.Context, hook Hook) (output []byte, err error)

// A HookError means that a hook failed.
type HookError struct {
	Name   string
	Output string
	Err    error
}

func (e *HookError) Error() string {
	text := fmt.Sprintf("hook %s failed: %v", e.Name, e.Err)
	if output := ending.Of(e.Output); output != "" {
		text += "\n" + output
	}
	return text
}

func (e *HookError) Unwrap() error { return e.Err }

// HookSet is the set of hooks for one commit. Their files, a copy of the index and the message, are in the
// worktree's git directory, which the hooks can write inside the sandbox. Changes of the index copy are
// ignored.
type HookSet struct {
	w      *repo.Worktree
	runner HookRunner
	Index  *content.Index
	dir    string // directory of the scripts
	Input  []byte // standard input for hooks that read it
}

// A MessageHook is a hook that may change a commit's message. Its arguments are the name of the message
// file and args.
type MessageHook struct {
	Name string
	args []string
}

// PrepareHook returns the hook that prepares the message of a commit.
func PrepareHook() MessageHook { return MessageHook{PrepareMsg, []string{"message"}} }

// Hooks returns the repository's hooks. If core.hooksPath is relative, it is resolved in the first of the checkouts, the worktree
// and the main checkout that contains the directory: husky makes .husky/_ in the main checkout, and git ignores it.
func Hooks(ctx context.Context, w *repo.Worktree, runner HookRunner, ix *content.Index, checkouts ...string) (*HookSet, error) {
	set := &HookSet{w: w, runner: runner, Index: ix}
	if runner == nil {
		return set, nil
	}
	settings, err := w.Repo.Git().Configured(ctx, `^core\.hookspath$`, true)
	if err != nil {
		return nil, fmt.Errorf("find the hooks: %w", err)
	}
	set.dir = filepath.Join(w.Repo.GitDir, "hooks")
	for _, s := range settings {
		if s.Value != "" {
			set.dir = s.Value
		}
	}
	if filepath.IsAbs(set.dir) {
		return set, nil
	}
	all := append(slices.Clone(checkouts), w.Path, w.Repo.Root)
	at := slices.IndexFunc(all, func(top string) bool { return file.Exists(filepath.Join(top, set.dir)) })
	set.dir = filepath.Join(all[max(at, 0)], set.dir)
	return set, nil
}

// Has reports whether there is a hook to run. The tracker's own hooks (.beads/hooks) are not run, because
// they would export tasks into the commit.
func (s *HookSet) Has(name string) bool {
	if s.runner == nil || strings.Contains(s.dir+"/", "/.beads/hooks/") {
		return false
	}
	info, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// Run runs a hook, if it exists.
func (s *HookSet) Run(ctx context.Context, name string, args ...string) error {
	if !s.Has(name) {
		return nil
	}
	copied := filepath.Join(s.w.Admin, hookIndexFile)
	if err := s.Index.CopyTo(copied); err != nil {
		return fmt.Errorf("prepare hook %s: %w", name, err)
	}
	hook := Hook{
		Name: name, Path: filepath.Join(s.dir, name), Args: args, Dir: s.w.Path,
		Env: []string{"GIT_INDEX_FILE=" + copied, "GIT_EDITOR=:", "GIT_PREFIX="}, Input: s.Input,
	}
	output, failed, err := s.isolated(ctx, hook)
	if err != nil {
		return fmt.Errorf("hook %s: %w", name, err)
	}
	if failed != nil {
		return &HookError{Name: name, Output: string(output), Err: failed}
	}
	return nil
}

// isolated runs a hook while the worktree is isolated. Commits made by the hook are discarded. The caller
// holds the task's lock.
func (s *HookSet) isolated(ctx context.Context, hook Hook) (output []byte, failed, err error) {
	if err := isolation.BeginLocked(ctx, s.w); err != nil {
		return nil, nil, err
	}
	since, err := isolation.ReadRecord(s.w)
	if err != nil {
		return nil, nil, err
	}
	output, failed = s.runner(ctx, hook)
	return output, failed, isolation.Rejoin(context.WithoutCancel(ctx), s.w, since)
}

// Message runs the given hooks in order on a message and returns the result.
func (s *HookSet) Message(ctx context.Context, text string, hooks ...MessageHook) (string, error) {
	if !slices.ContainsFunc(hooks, func(h MessageHook) bool { return s.Has(h.Name) }) {
		return text, nil
	}
	path := filepath.Join(s.w.Admin, messageFile)
	if err := file.Recreate(path, text); err != nil {
		return "", fmt.Errorf("write the message for hooks: %w", err)
	}
	for _, hook := range hooks {
		if err := s.Run(ctx, hook.Name, append([]string{path}, hook.args...)...); err != nil {
			return "", err
		}
	}
	raw, err := file.Read(path, maxMessage)
	if err != nil {
		return "", fmt.Errorf("read the message from hooks: %w", err)
	}
	clean, err := s.Index.Git.Feed(ctx, raw, "stripspace")
	if err == nil && len(clean) == 0 {
		err = &HookError{Name: CommitMsg, Err: errors.New("empty commit message")}
	}
	return string(clean), err
}

// after runs the post-commit hook and ignores its result.
func (s *HookSet) after(ctx context.Context) { _ = s.Run(ctx, PostCommit) }

// Drop removes the hooks' files. If that fails, they are removed with the worktree.
func (s *HookSet) Drop() { _ = os.Remove(filepath.Join(s.w.Admin, hookIndexFile)) }
