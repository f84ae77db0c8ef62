package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/runner/engine"
)

// script runs a script leaf: a command, or checks.
func (x *Executor) script(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if b.cutOff {
		if err := x.restoreStart(ctx, c.Path, b.Snapshot); err != nil {
			return event.Result{}, err
		}
	}
	if text := tooLong(c.Script); text != "" {
		return event.Result{Error: text, ErrorType: event.ErrorTooLong}, nil
	}
	transcript, _, err := x.Journal.OpenLog(c.Path)
	if err != nil {
		return event.Result{}, err
	}
	defer transcript.Close() //nolint:errcheck // the events are the record, the log is for people
	if len(c.Script.Checks) > 0 {
		return x.checks(ctx, c.Path, c.Script.Checks, transcript)
	}
	env := append([]string{"COVEN_STEP_KEY=" + x.key(c.Path)}, c.Script.Env...)
	sum := sha256.New()
	ran, err := x.run(ctx, c.Path, Command{
		Shell: c.Script.Command, Env: env, Secrets: c.Script.Secrets, Workdir: c.Script.Workdir, TTY: c.Script.TTY, Transcript: io.MultiWriter(transcript, sum),
	})
	failpoint.Point("script.ended")
	if err != nil {
		return event.Result{}, err
	}
	result := ran.result("the command")
	receipt := ran.receipt(c.Script.Command, b.Tree, sum)
	receipt.Settings = settings(c.Script)
	result.Receipts = []event.Receipt{receipt}
	if result.ErrorType != "" {
		return x.commitUnfinished(ctx, result)
	}
	return x.commit(ctx, c, b, result, "")
}

// run runs a command of a leaf while the repository is watched.
func (x *Executor) run(ctx context.Context, path string, command Command) (ran Ran, err error) {
	err = x.watched(ctx, path, func() (err error) {
		ran, err = x.Commands.Run(ctx, command)
		return err
	})
	return ran, err
}

// maxArgument is the maximum length of an argument or variable of a program: Linux allows 128 KiB,
// including the terminating byte.
const maxArgument = 128<<10 - 1

// tooLong describes the part of a script that exceeds the system's limit, or returns "".
func tooLong(s *engine.ScriptInput) string {
	const advice = "%s is too long: %d KiB, at most 127 KiB are possible; pass large values in a file"
	if n := len(s.Command); n > maxArgument {
		return fmt.Sprintf(advice, "the command", n>>10)
	}
	for _, variable := range s.Env {
		if n := len(variable); n > maxArgument {
			name, _, _ := strings.Cut(variable, "=")
			return fmt.Sprintf(advice, "the variable "+name, n>>10)
		}
	}
	return ""
}

// settings returns a hash of the variables, the directory and the terminal of a script, so that its receipt differs
// from that of the bare command. It is empty if the script sets none.
func settings(s *engine.ScriptInput) string {
	if len(s.Env) == 0 && s.Workdir == "" && !s.TTY {
		return ""
	}
	all := append([]string{s.Workdir}, s.Env...)
	if s.TTY {
		all = append(all, "tty")
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:])
}

// receipt returns the proof that a command ran on a tree.
func (r Ran) receipt(command, tree string, log hash.Hash) event.Receipt {
	receipt := event.Receipt{
		Command: command, ExitCode: r.ExitCode, Tree: tree, Duration: r.Duration, Log: hex.EncodeToString(log.Sum(nil)),
	}
	if r.Stopped != "" {
		receipt.ExitCode = -1
	}
	return receipt
}

// result returns the result of a leaf that ran a command, which is called what in errors.
func (r Ran) result(what string) event.Result {
	result := event.Result{Output: strings.TrimSpace(r.Output), ExitCode: r.ExitCode}
	switch {
	case r.Stopped != "":
		result.Error, result.ErrorType = what+" was stopped: "+r.Stopped, event.ErrorTimeout
	case r.ExitCode != 0:
		result.Error, result.ErrorType = fmt.Sprintf("%s ended with exit code %d", what, r.ExitCode), event.ErrorProcessExit
	}
	return result
}

// checks runs checks in order until one fails. A check must not change the worktree: its changes are saved
// in a snapshot and reverted.
func (x *Executor) checks(ctx context.Context, path string, checks []string, transcript io.Writer) (event.Result, error) {
	result := event.Result{OK: true}
	for _, check := range checks {
		before, tree, err := x.save(ctx, "before check "+check)
		if err != nil {
			return event.Result{}, err
		}
		ran, receipt, err := x.check(ctx, path, check, tree, before, transcript)
		if err != nil {
			return event.Result{}, err
		}
		result.Receipts, result.Tree = append(result.Receipts, receipt), tree
		if failed := ran.result("check " + check); failed.ErrorType != "" {
			failed.Receipts, failed.Tree = result.Receipts, result.Tree
			return failed, nil
		}
		result.Output += "$ " + check + "\n" + strings.TrimSpace(ran.Output) + "\n"
	}
	return result, nil
}

// check runs one check and returns its receipt. The receipt is recorded after the worktree has been
// restored.
func (x *Executor) check(ctx context.Context, path, check, tree string, before event.Snapshot, transcript io.Writer) (Ran, event.Receipt, error) {
	if err := x.emit(event.CheckStarted, path, event.Check{Text: check, Snapshot: before.Commit}); err != nil {
		return Ran{}, event.Receipt{}, err
	}
	tip, err := x.Workspace.Tip(ctx)
	if err != nil {
		return Ran{}, event.Receipt{}, err
	}
	sum := sha256.New()
	ran, err := x.run(ctx, path, Command{
		Shell: check, Env: []string{"COVEN_STEP_KEY=" + x.key(path)}, Transcript: io.MultiWriter(transcript, sum),
	})
	failpoint.Point("check.ran")
	if isChanged(err) {
		return Ran{}, event.Receipt{}, err
	}
	if err := errors.Join(err, x.tidy(context.WithoutCancel(ctx), path, check, tip, before)); err != nil {
		return Ran{}, event.Receipt{}, err
	}
	receipt := ran.receipt(check, tree, sum)
	return ran, receipt, x.emit(event.CheckEnded, path, receipt)
}

// beforeCheck returns the snapshot before an interrupted check, which made the changes since then. It is
// empty if no check was interrupted.
func (x *Executor) beforeCheck(path string) string {
	events := x.Journal.At(path, event.CheckStarted, event.CheckEnded, event.StepCompleted, event.BatchEnded)
	left := len(events)
	for left > 0 && isStop(events[left-1]) { // the step ended without calling tidy
		left--
	}
	if left == 0 || events[left-1].Type != event.CheckStarted {
		return ""
	}
	last := events[left-1]
	stop, ok := x.Journal.last(event.SessionWaiting, event.SessionStopped, event.SessionBlocked)
	if ok && stop.Seq > last.Seq && left == len(events) {
		return ""
	}
	return event.As[event.Check](last).Snapshot
}

// tidy moves the branch back to tip, reverts the changes of a check, and warns of both.
func (x *Executor) tidy(ctx context.Context, path, check, tip string, before event.Snapshot) error {
	rescue, err := x.putTipBack(ctx, path, tip)
	if err == nil && rescue != "" {
		err = x.warn(path, fmt.Sprintf("check %q moved the branch; it was restored, and its commits are saved as %s", check, rescue))
	}
	if err != nil {
		return err
	}
	after, err := x.Workspace.Snapshot(ctx, "left by check "+check)
	if err != nil || after.Tree == before.Tree {
		return err
	}
	files, err := x.Workspace.Changed(ctx, before.Commit, after.Commit)
	if err != nil {
		return err
	}
	if err := x.Workspace.Restore(ctx, before.Commit); err != nil {
		return err
	}
	return x.warn(path, fmt.Sprintf("check %q changed the worktree (%s); changes reverted and saved as snapshot %d",
		check, strings.Join(files, ", "), after.N))
}
