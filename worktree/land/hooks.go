package land

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The reference-transaction hook and its three states.
const (
	RefTransaction = "reference-transaction"
	statePrepared  = "prepared"
	stateCommitted = "committed"
	stateAborted   = "aborted"
)

// signTimeout limits the run time of the signing program.
const signTimeout = 2 * time.Minute

// A SignError means that a commit could not be signed, although commit.gpgSign requires it.
type SignError struct {
	Output string // output of git and the signing program
	Err    error
}

func (e *SignError) Error() string { return "cannot sign the commit to land: " + e.Output }

func (e *SignError) Unwrap() error { return e.Err }

// hooks returns the repository's hooks for this landing, with an index of the tree that lands. Hooks in the
// main checkout take precedence over those in the worktree, which the agent may have changed.
func (l *landing) hooks(ctx context.Context) (*commit.HookSet, func(), error) {
	set, err := commit.Hooks(ctx, l.w, l.req.Hooks, nil, l.w.Repo.Root)
	if err != nil || !set.Has(commit.CommitMsg) && !set.Has(RefTransaction) {
		return set, func() {}, err
	}
	if set.Index, err = content.Open(l.w, l.w.Git(), "none"); err != nil {
		return nil, nil, err
	}
	drop := func() { set.Drop(); set.Index.Drop() }
	if err := set.Index.Git.Run(ctx, "read-tree", l.req.Landing.Tree); err != nil {
		drop()
		return nil, nil, err
	}
	return set, drop, nil
}

// message returns the message of the squash or merge commit, as changed by the commit-msg hook.
func (l *landing) message(ctx context.Context) (string, error) {
	set, drop, err := l.hooks(ctx)
	if err != nil {
		return "", err
	}
	defer drop()
	return set.Message(ctx, l.req.Message, commit.MessageHook{Name: commit.CommitMsg})
}

// A refHook runs the reference-transaction hook for a landing. It runs only for the target, never for
// coven's own refs. The hook can refuse the landing before anything has moved.
type refHook struct {
	landing *landing
	intent  integrate.Landing
}

func (h refHook) prepared(ctx context.Context) error {
	err := h.call(ctx, statePrepared)
	if err != nil {
		h.ended(ctx, err)
	}
	return err
}

// ended reports the end of the transaction. Like git, it ignores the hook's result.
func (h refHook) ended(ctx context.Context, failed error) {
	state := stateCommitted
	if failed != nil {
		state = stateAborted
	}
	_ = h.call(context.WithoutCancel(ctx), state)
}

func (h refHook) call(ctx context.Context, state string) error {
	set, drop, err := h.landing.hooks(ctx)
	if err != nil {
		return err
	}
	defer drop()
	set.Input = fmt.Appendf(nil, "%s %s %s\n", h.intent.Old, h.intent.New, h.intent.Target.Ref)
	return set.Run(ctx, RefTransaction, state)
}

// store creates a commit that lands. It is signed if the user's settings require it.
func (l *landing) store(ctx context.Context, tree, message string, author []string, parents ...string) (string, error) {
	signs, err := l.git.Enabled(ctx, "commit.gpgSign")
	if err != nil {
		return "", fmt.Errorf("read commit.gpgSign: %w", err)
	}
	if !signs {
		return l.w.Repo.MakeCommit(ctx, tree, message, author, parents...)
	}
	oid, err := l.w.Repo.StoreSigned(ctx, git.NewCommit{Tree: tree, Message: message, Parents: parents}, author, signTimeout)
	if err != nil {
		failed := &SignError{Output: err.Error(), Err: err}
		if said, ok := errors.AsType[*git.Error](err); ok && said.Stderr != "" && !errors.Is(err, repo.ErrSignTime) && ctx.Err() == nil {
			failed.Output = said.Stderr
		}
		return "", failed
	}
	return oid, nil
}
