package main

import (
	"context"
	"errors"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/tripwire"
)

// cmdWatched implements watched TASK COMMAND...: it runs a command as an unsandboxed program of a task
// would run, while the repository is watched.
func cmdWatched(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: watched TASK COMMAND...")
	}
	ctx := context.Background()
	repo, err := worktree.Open(ctx, ts.MkAbs("."))
	ts.Check(err)
	tree, err := repo.Find(ctx, args[0])
	if errors.Is(err, worktree.ErrNoWorktree) {
		tree, err = worktree.Add(ctx, repo, worktree.AddRequest{TaskID: args[0], Base: "HEAD"})
	}
	ts.Check(err)
	mark, err := tripwire.Watch(ctx, tree, tripwire.WatchOptions{})
	ts.Check(err)
	ts.Check(ts.Exec(args[1], args[2:]...))
	found, err := mark.Compare(ctx)
	ts.Check(err)
	if len(found.Changes) == 0 {
		ts.Fatalf("nothing has changed")
	}
	ts.Check(mark.Done())
}
