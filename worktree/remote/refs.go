package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A Move moves a ref of a remote. Old and New are its commits before and after; an empty one means that the ref does not exist.
type Move struct{ Ref, Old, New string }

// A MovedError means that a ref of a remote has another commit than expected.
type MovedError struct {
	Remote, Ref string
	Tip         string // of the ref; empty if it does not exist
}

func (e *MovedError) Error() string {
	if e.Tip == "" {
		return fmt.Sprintf("%s of %s no longer exists", e.Ref, e.Remote)
	}
	return fmt.Sprintf("%s of %s has moved to %.12s", e.Ref, e.Remote, e.Tip)
}

// NextCommand returns the git command that shows the refs of the remote.
func (e *MovedError) NextCommand() string { return "git ls-remote " + e.Remote }

// Refs returns the refs of a remote that match the patterns, by name, at most after timeout. A pattern is the end of a name, with wildcards as in git ls-remote.
func Refs(ctx context.Context, r *repo.Repo, remote string, timeout time.Duration, patterns ...string) (map[string]string, error) {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	g, err := networkGit(ctx, r)
	if err != nil {
		return nil, err
	}
	return refs(ctx, g, remote, patterns...)
}

// limited returns a context that ends after timeout.
func limited(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than %s", timeout))
}

func networkGit(ctx context.Context, r *repo.Repo) (git.Repo, error) {
	settings, err := r.Git().Configured(ctx, `^core\.sshcommand$`, false)
	return quietGit(r, settings), err
}

func refs(ctx context.Context, g git.Repo, remote string, patterns ...string) (map[string]string, error) {
	found, err := list(ctx, g, remote, patterns...)
	if err != nil {
		return nil, fmt.Errorf("list the refs of %s: %w", remote, err)
	}
	return found, nil
}

// list is refs with the error of git.
func list(ctx context.Context, g git.Repo, remote string, patterns ...string) (map[string]string, error) {
	out, err := g.Output(ctx, append([]string{"ls-remote", "--quiet", "--refs", "--", remote}, patterns...)...)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if oid, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && object.IsID(oid) {
			found[name] = oid
		}
	}
	return found, nil
}

// negotiate makes a push ask first which commits the remote has, over another connection. git pushes the whole history if it knows none of the remote's
// refs as they are now: in a repository with one branch, that is so whenever another clone has just pushed to it.
var negotiate = git.Setting{Key: "push.negotiate", Value: "true"}

// MoveRefs moves refs of a remote, all or none, at most after timeout. Nothing moves unless each ref has its Old. The push contains each move, so
// that the remote checks them all: git does not send a ref that does not change, and then checks only here whether it has its Old. Hooks do not run.
//
// The error is a *MovedError if a ref has neither its Old nor its New. Other errors are a *PushError. If the answer of the remote is lost,
// MoveRefs asks again.
func MoveRefs(ctx context.Context, r *repo.Repo, remote string, timeout time.Duration, moves ...Move) error {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	g, err := networkGit(ctx, r)
	if err != nil {
		return err
	}
	args := []string{"push", "--quiet", "--atomic", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"}
	var specs, names []string
	for _, m := range moves {
		if m.Old == m.New {
			return fmt.Errorf("move %s of %s: it would not move", m.Ref, remote)
		}
		args = append(args, "--force-with-lease="+m.Ref+":"+m.Old)
		specs, names = append(specs, m.New+":"+m.Ref), append(names, m.Ref)
	}
	if !slices.ContainsFunc(moves, func(m Move) bool { return m.Old != "" }) {
		g.Settings = append(slices.Clone(g.Settings), negotiate)
	}
	failed := g.Run(ctx, append(append(args, "--", remote), specs...)...)
	if failed == nil {
		return nil
	}
	now, err := refs(ctx, g, remote, names...)
	if err != nil {
		return &PushError{Remote: remote, Branch: names[0], Denied: denied(failed), Err: failed}
	}
	done := true
	for _, m := range moves {
		if tip := now[m.Ref]; tip != m.Old && tip != m.New {
			return &MovedError{remote, m.Ref, tip}
		}
		done = done && now[m.Ref] == m.New
	}
	if done {
		return nil
	}
	return &PushError{Remote: remote, Branch: names[0], Denied: denied(failed), Err: failed}
}

// Fetch fetches the objects of refs of a remote, at most for timeout. No ref moves.
func Fetch(ctx context.Context, r *repo.Repo, remote string, timeout time.Duration, refs ...string) error {
	ctx, cancel := limited(ctx, timeout)
	defer cancel()
	g, err := networkGit(ctx, r)
	if err != nil {
		return err
	}
	return fetch(ctx, g, remote, refs...)
}

// fetch fetches only objects: no FETCH_HEAD, no tags, no other refs.
func fetch(ctx context.Context, g git.Repo, remote string, refs ...string) error {
	return g.Run(ctx, append([]string{"fetch", "--quiet", "--no-write-fetch-head", "--no-tags", "--no-prune", "--no-recurse-submodules", "--refmap=", "--", remote}, refs...)...)
}
