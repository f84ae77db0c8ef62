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
	"github.com/coven-run/coven/runner/workclock"
)

// checks runs checks in order until one fails. A check must not change the worktree: its changes are saved
// in a snapshot and reverted.
func (x *Executor) checks(ctx context.Context, path string, checks []check.Check) (event.Result, error) {
	result := event.Result{OK: true}
	for _, c := range checks {
		ran, receipt, err := x.prove(ctx, path, c)
		if err != nil {
			return event.Result{}, err
		}
		result.Receipts, result.Tree = append(result.Receipts, receipt), receipt.Tree
		if failed := ran.result("check " + c.Run); failed.ErrorType != "" {
			failed.Receipts, failed.Tree = result.Receipts, result.Tree
			return failed, nil
		}
		result.Output += "$ " + c.Run + "\n" + strings.TrimSpace(ran.Output) + "\n"
	}
	return result, nil
}

// prove runs a check and records its receipt. A check that fails while checks of other tasks run is run once more,
// alone, before it counts. This is recorded in between, so that after a kill only the second run follows.
func (x *Executor) prove(ctx context.Context, path string, c check.Check) (Ran, event.Receipt, error) {
	first := x.failedBeside(path, c.Run)
	ran, receipt, beside, err := x.check(ctx, path, c, first.Beside != "")
	if err == nil && receipt.ExitCode != 0 && beside != "" && ctx.Err() == nil {
		first = event.CheckRepeat{Text: c.Run, Tree: receipt.Tree, Beside: beside}
		if err = x.emit(event.CheckRepeated, path, first); err == nil {
			failpoint.Point("check.repeated")
			ran, receipt, _, err = x.check(ctx, path, c, true)
		}
	}
	if err != nil {
		return Ran{}, event.Receipt{}, err
	}
	if first.Tree == receipt.Tree {
		receipt.FailedBeside = first.Beside
	}
	if receipt.FailedBeside != "" && receipt.ExitCode == 0 {
		err = x.warn(path, fmt.Sprintf("check %q passed alone, and failed beside %s: they may use the same port, file or database; to run such checks one at a time: lock (coven help config)",
			c.Run, receipt.FailedBeside))
	}
	return ran, receipt, errors.Join(err, x.emit(event.CheckEnded, path, receipt))
}

// failedBeside returns the first run of a check that a killed coven was about to repeat. It is zero if there is none.
func (x *Executor) failedBeside(path, command string) event.CheckRepeat {
	for _, e := range slices.Backward(x.Journal.At(path, event.CheckRepeated, event.CheckEnded)) {
		if e.Type == event.CheckEnded && event.As[event.Receipt](e).Command == command {
			break
		}
		if first := event.As[event.CheckRepeat](e); e.Type == event.CheckRepeated && first.Text == command {
			return first
		}
	}
	return event.CheckRepeat{}
}

// check runs one check, and then restores the worktree. beside lists the other tasks whose checks ran at the same time.
func (x *Executor) check(ctx context.Context, path string, c check.Check, alone bool) (ran Ran, receipt event.Receipt, beside string, err error) {
	reservation, err := x.reserve(ctx, path, c, alone)
	if err != nil {
		return Ran{}, receipt, "", err
	}
	defer reservation.Release()
	before, tree, err := x.save(ctx, "before check "+c.Run)
	if err != nil {
		return Ran{}, receipt, "", err
	}
	if err := x.emit(event.CheckStarted, path, event.Check{Text: c.Run, Snapshot: before.Commit}); err != nil {
		return Ran{}, receipt, "", err
	}
	tip, err := x.Workspace.Tip(ctx)
	if err != nil {
		return Ran{}, receipt, "", err
	}
	ran, err = x.run(ctx, path, Command{Shell: c.Run, Env: []string{"COVEN_STEP_KEY=" + x.key(path)}, Reuse: c.Reuse})
	failpoint.Point("check.ran")
	if isChanged(err) {
		return Ran{}, receipt, "", err
	}
	beside = strings.Join(reservation.Beside(), ", ")
	reservation.Release()
	clean, tidied := x.tidy(context.WithoutCancel(ctx), path, c.Run, tip, before)
	if err := errors.Join(err, tidied); err != nil {
		return Ran{}, receipt, "", err
	}
	if clean && ran.Keep != nil {
		ran.Keep()
	}
	return ran, ran.receipt(c.Run, tree), beside, nil
}

// reserve waits until a check may run. Meanwhile the clocks of its step are paused.
func (x *Executor) reserve(ctx context.Context, path string, c check.Check, alone bool) (Reservation, error) {
	resume := workclock.Pause(ctx)
	defer resume()
	return x.Commands.Reserve(ctx, c, alone || c.Serial, func(reason string) error {
		return x.emit(event.CheckWaiting, path, event.Text{Text: reason})
	})
}

// beforeCheck returns the snapshot before an interrupted check, which made the changes since then. It is
// empty if no check was interrupted.
func (x *Executor) beforeCheck(path string) string {
	events := x.Journal.At(path, event.CheckStarted, event.CheckRepeated, event.CheckOnBase, event.CheckEnded, event.StepCompleted, event.BatchEnded)
	left := len(events)
	for left > 0 && evidence.IsStop(events[left-1]) { // the step ended without calling tidy
		left--
	}
	if left == 0 || events[left-1].Type != event.CheckStarted {
		return ""
	}
	last := events[left-1]
	stop, ok := x.Journal.Last(event.SessionWaiting, event.SessionStopped, event.SessionBlocked)
	if ok && stop.Seq > last.Seq && left == len(events) {
		return ""
	}
	return event.As[event.Check](last).Snapshot
}

// tidy moves the branch back to tip, reverts the changes of a check, and warns of both. clean means that there were none.
func (x *Executor) tidy(ctx context.Context, path, check, tip string, before event.Snapshot) (clean bool, err error) {
	rescue, err := x.putTipBack(ctx, path, tip)
	if err == nil && rescue != "" {
		err = x.warn(path, fmt.Sprintf("check %q moved the branch; it was restored, and its commits are saved as %s", check, rescue))
	}
	if err != nil {
		return false, err
	}
	after, err := x.Workspace.Snapshot(ctx, "left by check "+check)
	if err != nil || after.Tree == before.Tree {
		return err == nil, err
	}
	files, err := x.Workspace.Changed(ctx, before.Commit, after.Commit)
	if err != nil {
		return false, err
	}
	if err := x.Workspace.Restore(ctx, before.Commit); err != nil {
		return false, err
	}
	return false, x.warn(path, fmt.Sprintf("check %q changed the worktree (%s); changes reverted and saved as snapshot %d",
		check, strings.Join(files, ", "), after.N))
}
