// Package replay runs the checks of a receipt again.
package replay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/receipts"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/notes"
	"github.com/coven-run/coven/worktree/snapshot"
)

// name is the name of the worktree of a replay, and of its lock. No task has it.
const name = "coven-verify-replay"

// Run runs the required checks of a receipt again, in the sandbox and in a clean worktree of exactly its tree, and adds the
// comparison of their exit codes to the report. Commands that are not in the configuration run only if the signature of the
// receipt is good.
func Run(ctx context.Context, c *control.Controller, r *receipts.Report) (err error) {
	settings := c.Project.Config
	replay := workspace.Replay{Commit: r.Commit, Idle: settings.Timeouts.Idle, Setup: settings.Worktree.Setup}
	from := "of this repository's configuration: the receipt does not have it"
	if r.Statement.Predicate.Setup != nil {
		replay.Setup, from = r.Statement.Predicate.Setup, "of the receipt"
	}
	expected := map[string]int{}
	for _, one := range r.Statement.Predicate.Checks {
		if one.Required {
			replay.Checks, expected[one.Command] = append(replay.Checks, one.Command), one.ExitCode
		}
	}
	known := append(check.Commands(settings.Checks), settings.Worktree.Setup...)
	for _, command := range append(slices.Clone(replay.Setup), replay.Checks...) {
		if r.Signature.Result != notes.Good && !slices.Contains(known, command) {
			return exit.Usagef("coven verify --signed "+r.Commit, "--replay does not run %q: the receipt has no good signature, and this repository's configuration does not have the command", command)
		}
	}
	if len(replay.Setup) > 0 {
		r.Add("replay", receipts.OK, "worktree.setup %s: %s", from, strings.Join(replay.Setup, "; "))
	}
	replay.Ended = func(command string, ended process.Exit) {
		switch {
		case ended.Cause != nil:
			r.Add("replay", receipts.Failed, "%s: %s", command, ended)
		case ended.Code != expected[command]:
			r.Add("replay", receipts.Failed, "%s: exit code %d, and %d when it landed", command, ended.Code, expected[command])
		default:
			r.Add("replay", receipts.OK, "%s: exit code %d, as when it landed", command, ended.Code)
		}
	}
	lock, err := c.Project.Repo.Lock(ctx, name, "replay the checks of "+r.Commit)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := dropKilled(ctx, c.Project); err != nil {
		return err
	}
	ws, giveUp, err := c.Scratch(ctx, name, event.Session{Base: r.Commit, Target: r.Statement.Predicate.Target})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, giveUp()) }()
	return ws.Replay(ctx, replay)
}

// dropKilled removes the sessions of replays that were killed. The caller has the lock of replays.
func dropKilled(ctx context.Context, p *project.Project) error {
	found, err := session.FindLeftovers(p.Repo.Root, p.Env.Now().Add(time.Hour)) // with the lock, none is too new
	for _, l := range found {
		if id := filepath.Base(l.Path); strings.Contains(id, "-"+name) {
			err = errors.Join(err, snapshot.Drop(ctx, p.Repo, id), l.Remove())
		}
	}
	if err != nil {
		return fmt.Errorf("remove the rest of a killed replay: %w", err)
	}
	return nil
}
