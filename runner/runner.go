// Package runner runs one task: it claims the task, creates a worktree, runs the steps of the task's
// grimoire in it, lands the change, and closes the task. Runner.Run does this in order.
//
// Package engine defines the steps and how a session resumes; an Executor does the work of the leaves. All
// writes after the steps (close, remove, release) can be repeated.
//
// The package does not depend on the plugin host, worktrees or session directories: it declares the
// interfaces that it needs (seams.go), and its caller implements them.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/runner/elsewhere"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/runner/evidence"
)

// ErrInterrupted is the cause with which a run's context ends when a person interrupts the run.
var ErrInterrupted = exit.Sentinel(exit.Interrupted, "", "interrupted")

// ErrCancelled is the cause with which a run's context ends when a person cancels the session. The
// cancelling command cleans up afterwards.
var ErrCancelled = errors.New("cancelled")

// Runner runs one task of one session.
type Runner struct {
	Task      string // task ID
	Plan      *grimoires.Plan
	Journal   *Journal
	Tracker   tracker
	Claims    claims
	Remote    elsewhere.Landing // nil if no other machine can have the session
	Workspace workspace
	Executor  *Executor
}

// Outcome is the outcome of one run of a session.
type Outcome struct {
	Status  event.Status
	Reason  event.WaitReason // if Status is waiting
	Detail  string           // one line for the user
	Next    string           // the command that continues; may be empty
	Until   time.Time        // the earliest time to resume; zero means any time
	More    string           // the amount by which Next raises a budget of the session
	Summary string
	Commit  string // the landed commit
	Step    string // path of the step that ended the run
}

// Run runs or resumes the session until it ends or has to wait.
func (r *Runner) Run(ctx context.Context) (Outcome, error) {
	claim, err := r.Claims.Claim(ctx)
	if err != nil {
		return Outcome{}, r.stopped(err)
	}
	if err := r.emit(event.TaskClaimed, claim); err != nil {
		return Outcome{}, err
	}
	landed, err := elsewhere.Record(ctx, r.Journal, r.Remote, r.Plan.Target)
	out := engine.Outcome{Verdict: engine.Passed}
	if err == nil && !landed {
		out, err = r.work(ctx)
	}
	outcome, err := r.outcome(out, err)
	if err != nil {
		return Outcome{}, r.stopped(err)
	}
	if outcome.Status == event.StatusBlocked || outcome.Status == event.StatusFailed {
		outcome.Next = r.instead(outcome)
	}
	if err := r.end(context.WithoutCancel(ctx), outcome); err != nil {
		return Outcome{}, r.stopped(err)
	}
	return outcome, nil
}

// work runs the steps in the worktree.
func (r *Runner) work(ctx context.Context) (out engine.Outcome, err error) {
	out, err = r.enter(ctx)
	if err == nil && out.Verdict == engine.Passed {
		err = r.rehearse(ctx)
	}
	if err == nil && out.Verdict == engine.Passed {
		out, err = r.steps(ctx)
	}
	return out, err
}

// enter opens the worktree. If it is new, enter prepares it.
func (r *Runner) enter(ctx context.Context) (engine.Outcome, error) {
	if r.closed() {
		return engine.Outcome{Verdict: engine.Passed}, nil
	}
	n, err := r.Workspace.Enter(ctx)
	if err == nil {
		err = r.Executor.leaveBatch(ctx)
	}
	if err != nil {
		return engine.Outcome{}, err
	}
	return setUp(ctx, r.Plan.Worktree, r.Journal, r.Executor, n)
}

// steps runs the tree of the plan, or the rest of it.
func (r *Runner) steps(ctx context.Context) (engine.Outcome, error) {
	return RunSteps(ctx, r.Plan, r.Journal, r.Executor, r.recordSkip)
}

// recordSkip records, once, that a step was skipped, because a skipped step has no result.
func (r *Runner) recordSkip(_ string, reason engine.ExitReason, path string) {
	if reason != engine.ExitSkipped {
		return
	}
	if len(r.Journal.At(path, event.StepSkipped)) > 0 {
		return
	}
	_ = r.Journal.Append(event.Event{Type: event.StepSkipped, Path: path}, nil) // if the journal is broken, the next step fails
}

// stopped records the error that stopped the session, and returns it.
func (r *Runner) stopped(err error) error {
	ended := event.Ended{Reason: err.Error(), Next: r.command("resume")}
	if times, _ := (evidence.Evidence{Journal: r.Journal}).Repeats("", ended.Reason, event.SessionStopped); times > 0 {
		ended.Next = "coven doctor"
	}
	var login interface {
		error
		Then(resume string) string // the commands that log in, and then resume
	}
	if errors.As(err, &login) {
		ended.Reason, ended.Next = login.Error(), login.Then(r.command("resume"))
	}
	return errors.Join(err, r.emit(event.SessionStopped, ended))
}

// reason returns the error of a result without the type, which is the prefix of some texts.
func reason(r event.Result) string {
	return strings.TrimPrefix(r.Error, string(r.ErrorType)+": ")
}

// outcome converts the outcome of the tree, or an expected error, to the outcome of the run. It returns
// other errors, which stop the session.
func (r *Runner) outcome(out engine.Outcome, err error) (Outcome, error) {
	outcome := Outcome{Summary: out.Result.Summary, Step: out.Path}
	wait := (*Wait)(nil)
	switch {
	case errors.As(err, &wait):
		outcome.Status, outcome.Reason, outcome.Detail = event.StatusWaiting, wait.Reason, wait.Detail
		outcome.Next, outcome.Until = cmp.Or(wait.Command, r.command(wait.Next)), wait.Until
		if outcome.More = wait.More; wait.More != "" {
			outcome.Next += " --budget " + wait.More
		}
		if wait.Other != "" {
			outcome.Detail += "; or continue with " + wait.Other + ": " + r.command("resume --provider "+wait.Other)
		}
	case errors.Is(err, ErrInterrupted):
		outcome.Status, outcome.Detail, outcome.Next = event.StatusInterrupted, "stopped by you", r.command("resume")
	case errors.Is(err, ErrCancelled):
		outcome.Status, outcome.Detail, outcome.Next = event.StatusCancelled, "by coven cancel", r.command("cancel")
	case err != nil:
		return Outcome{}, err
	case out.Verdict == engine.Stopped:
		outcome.Status, outcome.Detail = out.Status, reason(out.Result)
		outcome.Next = r.command(cmp.Or(out.Result.Next, "resume"))
		if out.Status == event.StatusFailed {
			outcome.Next = r.command("retry")
		}
		if evidence.IsMissing(out.Result) {
			outcome.Next = check.Change
		}
		outcome.Next = showRescue(out.Result.Rescue, outcome.Next)
	case out.Verdict == engine.Failed:
		outcome.Status, outcome.Detail, outcome.Next = event.StatusBlocked, reason(out.Result), r.command("resume")
	default:
		outcome.Status, outcome.Commit = event.StatusCompleted, r.landing().New
	}
	return outcome, nil
}

// closed reports whether the task has been closed or released in the tracker. The worktree may be gone
// then.
func (r *Runner) closed() bool { return r.Journal.has(event.TaskClosed, event.TaskReleased) }

// landing returns the last landing of this session, or the zero value.
func (r *Runner) landing() event.Landing {
	done, _ := r.Journal.Last(event.LandDone)
	return event.As[event.Landing](done)
}

// end updates the tracker, cleans up, and records the outcome, in this order. After an interruption, the
// next run of the session repeats it.
func (r *Runner) end(ctx context.Context, e Outcome) error {
	switch e.Status {
	case event.StatusCompleted:
		return r.complete(ctx, e)
	case event.StatusWaiting:
		return r.wait(ctx, e)
	case event.StatusInterrupted, event.StatusCancelled: // the cancelling command does the rest
		return r.emit(event.SessionStopped, r.ended(e))
	}
	if err := r.Tracker.Block(ctx, fmt.Sprintf("coven: %s at %s: %s", e.Status, e.Step, e.Detail)); err != nil {
		return err
	}
	if err := r.emit(event.TaskBlocked, event.Text{Text: e.Detail}); err != nil {
		return err
	}
	if e.Status == event.StatusFailed {
		return r.emit(event.SessionFailed, r.ended(e))
	}
	return r.emit(event.SessionBlocked, r.ended(e))
}

// wait records that the session waits. A spent budget is also noted in the task, for people who plan work
// and do not see sessions. If no agent has begun when an account cannot be used, the task becomes ready again; the session
// claims it when it is resumed.
func (r *Runner) wait(ctx context.Context, e Outcome) error {
	if e.Reason == event.WaitLimit && !r.Journal.has(event.AgentStarted) {
		if err := r.Tracker.Release(ctx, ""); err != nil {
			return err
		}
		failpoint.Point("limit.released")
	}
	if e.Reason == budgetReason {
		if err := r.Tracker.Note(ctx, fmt.Sprintf("coven: waiting (budget) at %s: %s; next: %s", e.Step, e.Detail, e.Next)); err != nil {
			return err
		}
	}
	return r.emit(event.SessionWaiting, event.Waiting{Reason: e.Reason, Detail: e.Detail, Next: e.Next, Step: e.Step, More: e.More, Until: e.Until})
}

// complete closes the task, or releases it if nothing has landed, and releases the session's worktree and
// claim.
func (r *Runner) complete(ctx context.Context, e Outcome) error {
	failpoint.Point("complete.begin")
	if err := r.finish(ctx, e); err != nil {
		return err
	}
	failpoint.Point("complete.closed")
	rescue, err := r.Workspace.Leave(ctx, r.landing().Tip)
	if err != nil {
		return err
	}
	failpoint.Point("complete.left")
	if err := r.Claims.Release(ctx); err != nil {
		return err
	}
	failpoint.Point("complete.released")
	ended := r.ended(e)
	ended.Rescue = rescue
	return r.emit(event.SessionCompleted, ended)
}

// finish closes or releases the task in the tracker, and records that once.
func (r *Runner) finish(ctx context.Context, e Outcome) error {
	if e.Commit == "" {
		if err := r.Tracker.Release(ctx, ""); err != nil || r.closed() {
			return err
		}
		return r.emit(event.TaskReleased, nil)
	}
	if err := r.Tracker.Close(ctx, e.Summary, e.Commit); err != nil || r.closed() {
		return err // an earlier run may have recorded it
	}
	return r.emit(event.TaskClosed, event.Text{Text: e.Summary})
}

func (r *Runner) ended(e Outcome) event.Ended {
	return event.Ended{Summary: e.Summary, Commit: e.Commit, Reason: e.Detail, Next: e.Next, Step: e.Step}
}

func (r *Runner) emit(t event.Type, data any) error {
	return r.Journal.Append(event.Event{Type: t}, data)
}

// command returns a command line for this task. It puts the task's ID after the first word of what, the verb.
func (r *Runner) command(what string) string {
	verb, arguments, _ := strings.Cut(what, " ")
	return strings.TrimSpace("coven " + verb + " " + shellword.Word(r.Task) + " " + arguments)
}

// instead returns the command to recommend for the end of a run, instead of next: a command that has just failed is not
// recommended again.
func (r *Runner) instead(o Outcome) string {
	times, fresh := evidence.Evidence{Journal: r.Journal}.Repeats(o.Step, o.Detail, event.SessionBlocked, event.SessionFailed)
	started, _ := r.Journal.lastAt(o.Step, event.StepStarted)
	kind := event.As[event.StepStart](started).Kind
	switch {
	case times == 0, o.Next == check.Change, strings.HasPrefix(o.Next, "coven reject "):
		return o.Next
	case kind == "agent" && fresh:
		return r.command("cancel")
	case kind == "agent":
		return r.command("retry --fresh")
	case kind == "script", kind == "setup":
		return r.command("logs")
	}
	return r.command("review")
}
