package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/workclock"
)

// setUp prepares the n-th worktree of a session with the commands of the plan. A setup with a recorded
// result does not run again. The outcome is Failed if a command failed.
func setUp(ctx context.Context, life grimoires.Worktree, j *Journal, leaves engine.Leaves, n int) (engine.Outcome, error) {
	out := engine.Outcome{Verdict: engine.Passed, Path: event.SetupPath(n)}
	if len(life.Setup) == 0 {
		return out, nil
	}
	result, err := Recorded(j, leaves).Do(ctx, engine.Call{
		Path: out.Path, Step: event.SetupStep, Setup: &engine.SetupInput{Commands: life.Setup, Timeout: life.SetupTimeout},
	})
	out.Result = result
	switch {
	case result.ErrorType == event.ErrorRepository:
		out.Verdict, out.Status = engine.Stopped, event.StatusBlocked
	case !result.OK:
		out.Verdict = engine.Failed
	}
	return out, err
}

// setup runs a setup leaf: it runs the commands in order until one fails. Like a check, it must not change tracked
// files: such changes are saved in a snapshot and reverted. The files that it makes stay, but are left out of the
// task's change.
func (x *Executor) setup(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if b.cutOff {
		if err := x.undoSetup(ctx, c.Path, b); err != nil {
			return event.Result{}, err
		}
	}
	result, err := x.setupCommands(ctx, c)
	failpoint.Point("setup.ended")
	if isChanged(err) {
		return result, err
	}
	if err == nil && result.OK {
		if err := x.excludeSetup(context.WithoutCancel(ctx), c.Path); err != nil {
			return result, err
		}
	}
	return result, errors.Join(err, x.undoSetup(context.WithoutCancel(ctx), c.Path, b))
}

// excludeSetup leaves the files that setup has made out of the task's change, and says so.
func (x *Executor) excludeSetup(ctx context.Context, path string) error {
	files, err := x.Commands.Prepared(ctx)
	if err != nil || len(files) == 0 {
		return err
	}
	const most = 10
	if len(files) > most {
		files = append(files[:most:most], fmt.Sprintf("%d more", len(files)-most))
	}
	return x.warn(path, "setup made files that git does not ignore ("+strings.Join(files, ", ")+"): they stay, and are left out of the change")
}

// setupCommands runs the commands until one fails or their time is up.
func (x *Executor) setupCommands(ctx context.Context, c engine.Call) (event.Result, error) {
	over := &engine.OverTimeError{Step: event.SetupStep, Limit: c.Setup.Timeout}
	ctx, stop := workclock.Limit(ctx, c.Setup.Timeout, over)
	defer stop()
	result := event.Result{OK: true}
	for _, command := range c.Setup.Commands {
		ran, err := x.run(ctx, c.Path, Command{Shell: command, Setup: true, Env: []string{"COVEN_STEP_KEY=" + x.key(c.Path)}})
		if err != nil && !isChanged(err) && errors.Is(context.Cause(ctx), over) {
			ran, err = Ran{Stopped: over.Error()}, nil // the time was up before the command started
		}
		if err != nil {
			return event.Result{}, err
		}
		if failed := ran.result("worktree.setup: " + command); failed.ErrorType != "" {
			return failed, nil
		}
		result.Output += "$ " + command + "\n" + strings.TrimSpace(ran.Output) + "\n"
	}
	return result, nil
}

// undoSetup reverts the changes of setup, except to files that are ignored or left out of the change, and warns of them.
func (x *Executor) undoSetup(ctx context.Context, path string, b leafStart) error {
	files, saved, err := x.revert(ctx, b.Snapshot, "left by "+path)
	if err != nil {
		return err
	}
	if len(files) > 0 {
		if err := x.warn(path, fmt.Sprintf("setup changed the worktree (%s); changes reverted and saved as snapshot %d; files that git ignores would stay",
			strings.Join(files, ", "), saved.N)); err != nil {
			return err
		}
	}
	rescue, err := x.putTipBack(ctx, path, b.Tip)
	if err != nil || rescue == "" {
		return err
	}
	return x.warn(path, "setup moved the branch; it was restored, and its commits are saved as "+rescue)
}
