package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/snapshot"
)

// Replay describes the commands that run in the clean worktree of a commit.
type Replay struct {
	Commit string
	Setup  []string      // commands that prepare a new worktree
	Checks []string      // commands that run one after the other on exactly the tree of the commit
	Idle   time.Duration // limit of the time without output
	Ended  func(check string, exit process.Exit)
}

// Replay runs commands in a new worktree as checks run, and removes it. Only one process may do so at a time with a worktree of
// this name: Replay removes that of a killed process.
func (s *Workspace) Replay(ctx context.Context, r Replay) (err error) {
	if err := s.dropKilled(ctx); err != nil {
		return err
	}
	tree, err := worktree.Add(ctx, s.Repo, worktree.AddRequest{TaskID: s.Task, Base: r.Commit})
	if err != nil {
		return err
	}
	s.use(tree)
	defer func() { err = errors.Join(err, s.dropReplay(context.WithoutCancel(ctx), r.Commit)) }()
	watchErr := s.watched(ctx, "replay", func() { err = s.replay(ctx, r) })
	return errors.Join(err, watchErr)
}

func (s *Workspace) replay(ctx context.Context, r Replay) error {
	for _, command := range r.Setup {
		exit, err := s.replayCommand(ctx, sandbox.Access{}, command, r)
		if err == nil && !exit.OK() {
			err = fmt.Errorf("worktree.setup: %s: %s", command, exit)
		}
		if err != nil {
			return err
		}
	}
	for _, command := range r.Checks {
		exit, err := s.replayCommand(ctx, sandbox.Access{Apart: true}, command, r)
		if err != nil {
			return err
		}
		r.Ended(command, exit)
	}
	return nil
}

// replayCommand runs a command and then restores the files of the commit.
func (s *Workspace) replayCommand(ctx context.Context, access sandbox.Access, command string, r Replay) (exit process.Exit, err error) {
	dir, err := s.Dir("")
	if err != nil {
		return exit, err
	}
	err = s.Isolated(ctx, func() (err error) {
		exit, _, err = s.RunWith(ctx, access, process.Spec{Argv: []string{"sh", "-c", command}, Dir: dir, Pipe: true, Idle: r.Idle})
		return cmp.Or(err, exit.Err, context.Cause(ctx))
	})
	return exit, errors.Join(err, s.Restore(context.WithoutCancel(ctx), r.Commit))
}

// dropKilled removes the worktree of a replay that was killed.
func (s *Workspace) dropKilled(ctx context.Context) error {
	tree, err := worktree.Leftover(ctx, s.Repo, s.Task)
	if errors.Is(err, worktree.ErrNoWorktree) {
		return nil
	}
	tip := ""
	if err == nil {
		tip, err = tree.TipIfAny(ctx)
	}
	if err == nil {
		_, err = worktree.Remove(ctx, tree, worktree.RemoveRequest{Note: "killed replay", Landed: tip, DropIgnored: true})
	}
	if err == nil {
		s.forgetCaches(tree.Name, "")
	}
	return err
}

// dropReplay removes the worktree of a replay with everything that its commands made.
func (s *Workspace) dropReplay(ctx context.Context, commit string) error {
	_, moved := s.PutTip(ctx, commit, "replay")
	_, removed := worktree.Remove(ctx, s.Worktree, worktree.RemoveRequest{Note: "replay", Landed: commit, DropIgnored: true})
	if removed == nil {
		s.forgetCaches(s.Worktree.Name, "")
	}
	return errors.Join(moved, removed, snapshot.Drop(ctx, s.Repo, s.Session.ID))
}
