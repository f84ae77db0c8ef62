package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// A GitlinkError names a submodule whose new commit is in no repository that
// stays: it would be gone with the task's worktree, and the target would name a
// commit that nobody has.
type GitlinkError struct {
	Path, Commit string
	Next         string // the command that keeps the commit
}

func (e *GitlinkError) Error() string {
	return fmt.Sprintf("submodule %s names commit %.12s, which exists only in the task's worktree; push it to the submodule's remote and fetch it, or keep it here: %s", e.Path, e.Commit, e.Next)
}

// gitlinksExist makes sure that each submodule commit that a candidate adds is in
// the submodule's repository of the main checkout, or is the tip of a branch that
// the worktree's submodule has from its remote.
func (w *Worktree) gitlinksExist(ctx context.Context, c Candidate) error {
	changes, err := w.repo.git().Changes(ctx, c.TargetTip, c.Tree)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.Mode != git.ModeSubmodule || change.Status == 'D' {
			continue
		}
		known, err := w.submoduleHas(ctx, change)
		if err != nil {
			return err
		}
		if !known {
			return &GitlinkError{Path: change.Path, Commit: change.Oid, Next: w.keepGitlink(change)}
		}
	}
	return nil
}

// keepGitlink is the command that brings a submodule's commit into the main
// checkout's submodule, on a branch there.
func (w *Worktree) keepGitlink(change git.Change) string {
	main := filepath.Join(w.repo.Root, change.Path)
	fetch := fmt.Sprintf("git -C %s fetch %s %s:refs/heads/%s", quote(main), quote(filepath.Join(w.Path, change.Path)), change.Oid, w.Branch)
	if isThere(filepath.Join(main, ".git")) {
		return fetch
	}
	return fmt.Sprintf("git -C %s submodule update --init -- %s && %s", quote(w.repo.Root), quote(change.Path), fetch)
}

func (w *Worktree) submoduleHas(ctx context.Context, change git.Change) (bool, error) {
	if dir, ok := submoduleDir(filepath.Join(w.repo.Root, change.Path)); ok {
		err := git.Repo{Dir: dir}.Run(ctx, "cat-file", "-e", change.Oid+"^{commit}")
		if err == nil || ctx.Err() != nil {
			return err == nil, err
		}
	}
	dir, ok := submoduleDir(filepath.Join(w.Path, change.Path))
	if !ok {
		return false, nil
	}
	return remoteTip(dir, change.Oid)
}

// submoduleDir finds a submodule's git directory, without git: in a task's
// worktree its settings are the agent's.
func submoduleDir(path string) (string, bool) {
	dotGit := filepath.Join(path, ".git")
	info, err := os.Lstat(dotGit)
	if err != nil {
		return "", false
	}
	if info.IsDir() {
		return dotGit, true
	}
	raw, err := readPlain(dotGit, maxGitFile)
	dir, found := strings.CutPrefix(strings.TrimSpace(string(raw)), "gitdir: ")
	if err != nil || !found {
		return "", false
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(path, dir)
	}
	return dir, true
}

// Bounds of what is read of an agent's git directory.
const (
	maxGitFile    = 4 << 10
	maxPackedRefs = 16 << 20
)

// remoteTip reports whether a branch of a remote, as last fetched or pushed, is at
// this commit. It reads files only.
func remoteTip(dir, oid string) (bool, error) {
	packed, err := readPlain(filepath.Join(dir, "packed-refs"), maxPackedRefs)
	if err == nil {
		for line := range strings.Lines(string(packed)) {
			if strings.HasPrefix(line, oid+" refs/remotes/") {
				return true, nil
			}
		}
	}
	found := false
	err = filepath.WalkDir(filepath.Join(dir, "refs", "remotes"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := readPlain(path, maxGitFile)
		if err == nil && strings.TrimSpace(string(raw)) == oid {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}
