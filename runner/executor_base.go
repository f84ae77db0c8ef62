package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/runner/evidence"
)

// checksAndBase runs checks. The first time that one of them fails as if it could not run, it runs once more on the files from which
// the change starts: if it fails there in the same way, the change is not the cause, and a person decides, before an agent is
// paid to fix it.
func (x *Executor) checksAndBase(ctx context.Context, path string, checks []check.Check) (event.Result, error) {
	result, err := x.checks(ctx, path, checks)
	if err != nil || result.ErrorType != event.ErrorProcessExit || !evidence.CannotRun(result.ExitCode, result.Output) {
		return result, err
	}
	failed := checks[len(result.Receipts)-1]
	if slices.ContainsFunc(x.Journal.All(event.CheckOnBase), func(e event.Event) bool { return evidence.IsSettled(event.As[event.BaseCheck](e), failed.Run) }) {
		return result, nil
	}
	same, err := x.failsOnBase(ctx, path, failed, result)
	if err == nil && same {
		result.ErrorType = event.ErrorBase
		result.Error = fmt.Sprintf("check %q fails in the same way without the change: %s", failed.Run, result.Output[strings.LastIndexByte(result.Output, '\n')+1:])
	}
	return result, err
}

// failsOnBase reports whether a check that has failed fails in the same way on the files from which the change starts.
func (x *Executor) failsOnBase(ctx context.Context, path string, c check.Check, failed event.Result) (bool, error) {
	base, err := x.Commands.Start(ctx)
	if err != nil || base == "" {
		return false, err
	}
	reservation, err := x.reserve(ctx, path, c, false)
	if err != nil {
		return false, err
	}
	defer reservation.Release()
	before, _, err := x.save(ctx, "before check "+c.Run+" without the change")
	if err != nil {
		return false, err
	}
	if err := x.emit(event.CheckStarted, path, event.Check{Text: c.Run, Snapshot: before.Commit, Base: true}); err != nil {
		return false, err
	}
	ran, err := x.runOn(ctx, path, base, c)
	failpoint.Point("check.base")
	if isChanged(err) {
		return false, err
	}
	if err := errors.Join(err, x.Workspace.Restore(context.WithoutCancel(ctx), before.Commit)); err != nil {
		return false, err
	}
	tried := event.BaseCheck{Text: c.Run, ExitCode: ran.ExitCode, Same: ran.Stopped == "" && evidence.SameFailure(failed.ExitCode, ran.ExitCode, failed.Output, ran.Output)}
	return tried.Same, x.emit(event.CheckOnBase, path, tried)
}

// runOn runs a check on the files of a commit.
func (x *Executor) runOn(ctx context.Context, path, commit string, c check.Check) (Ran, error) {
	if err := x.Workspace.Restore(ctx, commit); err != nil {
		return Ran{}, err
	}
	return x.run(ctx, path, Command{Shell: c.Run, Env: []string{"COVEN_STEP_KEY=" + x.key(path)}})
}
