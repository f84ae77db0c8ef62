// Package replay runs the checks of a receipt again.
package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/receipts"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/worktree/notes"
)

// Run runs the required checks of a receipt again, in the sandbox and in a clean worktree of exactly its tree, and adds the
// comparison of their exit codes to the report. Commands that are not in the configuration run only if the signature of the
// receipt is good.
func Run(ctx context.Context, c *control.Controller, r *receipts.Report) (err error) {
	settings := c.Project.Config
	replay := workspace.Replay{Commit: r.Commit, Setup: settings.Worktree.Setup, Idle: settings.Timeouts.Idle}
	known, expected := check.Commands(settings.Checks), map[string]int{}
	for _, one := range r.Statement.Predicate.Checks {
		if !one.Required {
			continue
		}
		if r.Signature.Result != notes.Good && !slices.Contains(known, one.Command) {
			return exit.Usagef("coven verify --signed "+r.Commit, "--replay does not run %q: the receipt has no good signature, and this repository's configuration does not have the command", one.Command)
		}
		replay.Checks, expected[one.Command] = append(replay.Checks, one.Command), one.ExitCode
	}
	replay.Ended = func(command string, ended process.Exit) {
		result := receipts.OK
		if ended.Code != expected[command] {
			result = receipts.Failed
		}
		r.Add("replay", result, "%s: exit code %d, and %d when it landed", command, ended.Code, expected[command])
	}
	ws, giveUp, err := c.Scratch(ctx, fmt.Sprintf("verify-%.12s", r.Commit), event.Session{Base: r.Commit, Target: r.Statement.Predicate.Target})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, giveUp()) }()
	return ws.Replay(ctx, replay)
}
