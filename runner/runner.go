// Package runner is the story of one task: claim it, give it a worktree, run the
// steps of its grimoire there, land what they made, close it.
//
// The steps themselves, and what resuming means, are package engine; an Executor does
// the work of its leaves. Every write after the steps (close, remove, release) may
// be repeated without harm.
//
// The package knows no plugin host, no worktree and no session directory: it
// declares the small interfaces that it needs, and its caller provides them.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/runner/engine"
)

// ErrInterrupted is the cause for which a run's context ends when a person
// stops it.
var ErrInterrupted = errors.New("interrupted")

// ErrCancelled is the cause for which a run's context ends when a person does
// not want the task's session any more. What it made is put away by who asked.
var ErrCancelled = errors.New("cancelled")

// Runner runs one task of one session.
type Runner struct {
	Task     string // its id
	Plan     *grimoires.Plan
	Journal  journal
	Tracker  tracker
	Claims   claims
	Ground   ground
	Executor *Executor
}

// journal is the record of a session.
type journal interface {
	Events() []event.Event
	Append(e event.Event, data any) error
}

// tracker is where the task lives.
type tracker interface {
	Close(ctx context.Context, summary, commit string) error
	Block(ctx context.Context, why string) error
	Release(ctx context.Context, why string) error
	// Note says something on the task. It may be said twice.
	Note(ctx context.Context, text string) error
}

// claims holds the task for this session.
type claims interface {
	Claim(ctx context.Context) (event.Claim, error)
	Release(ctx context.Context) error
}

// ground is the task's worktree as a whole. Both may be called again: entering
// finds the worktree, leaving one that is gone does nothing.
type ground interface {
	Enter(ctx context.Context) error
	// landed is the tip of the task's branch that has landed, or empty.
	Leave(ctx context.Context, landed string) (rescue string, err error)
}

// Outcome is how a run of a session ended.
type Outcome struct {
	Status  engine.Status
	Reason  event.WaitReason // of Waiting
	Detail  string           // one line for a person
	Next    string           // the one command that goes on; empty when there is none
	Until   time.Time        // when going on is of use; zero: at any time
	More    string           // of Next: what is added to a budget of the session's own
	Summary string
	Commit  string // what landed
	Step    string // path of the step that ended it
}

// Run runs the session from wherever it is to its next end.
func (r *Runner) Run(ctx context.Context) (Outcome, error) {
	claim, err := r.Claims.Claim(ctx)
	if err != nil {
		return Outcome{}, r.stopped(err)
	}
	if err := r.emit(event.TaskClaimed, claim); err != nil {
		return Outcome{}, err
	}
	if !r.closed() {
		if err := r.Ground.Enter(ctx); err != nil {
			return Outcome{}, r.stopped(err)
		}
	}
	out, err := r.steps(ctx)
	ending, err := r.outcome(out, err)
	if err != nil {
		return Outcome{}, r.stopped(err)
	}
	if err := r.end(context.WithoutCancel(ctx), ending); err != nil {
		return Outcome{}, r.stopped(err)
	}
	return ending, nil
}

// steps runs the plan's tree, or what is left of it.
func (r *Runner) steps(ctx context.Context) (engine.Outcome, error) {
	return RunSteps(ctx, r.Plan, r.Journal, r.Executor, r.recordSkip)
}

// recordSkip puts on record that a step was skipped, once: it has no result that could
// say so.
func (r *Runner) recordSkip(_ string, way engine.ExitReason, path string) {
	if way != engine.ExitSkipped {
		return
	}
	for _, e := range engine.Remembered(r.Journal.Events()) {
		if e.Type == event.StepSkipped && e.Path == path {
			return
		}
	}
	_ = r.Journal.Append(event.Event{Type: event.StepSkipped, Path: path}, nil) // a journal that is broken says so at the next step
}

// stopped puts on record why the machine broke: whoever asks later is told.
func (r *Runner) stopped(err error) error {
	ended := event.Ended{Reason: err.Error(), Next: r.command("resume")}
	return errors.Join(err, r.emit(event.SessionStopped, ended))
}

// outcome makes an ending of how the tree ended. What is no ending is an error.
func (r *Runner) outcome(out engine.Outcome, err error) (Outcome, error) {
	ending := Outcome{Summary: out.Result.Summary, Step: out.Path}
	wait := (*Wait)(nil)
	switch {
	case errors.As(err, &wait):
		ending.Status, ending.Reason, ending.Detail = engine.Waiting, wait.Reason, wait.Detail
		ending.Next, ending.Until = r.command(wait.Next), wait.Until
		if ending.More = wait.More; wait.More != "" {
			ending.Next += " --budget " + wait.More
		}
	case errors.Is(err, ErrInterrupted):
		ending.Status, ending.Detail, ending.Next = engine.Interrupted, "stopped by a person", r.command("resume")
	case errors.Is(err, ErrCancelled):
		ending.Status, ending.Detail, ending.Next = engine.Cancelled, "being cancelled by a person", r.command("cancel")
	case err != nil:
		return Outcome{}, err
	case out.Verdict == engine.Stopped:
		ending.Status, ending.Detail = out.Status, out.Result.Error
		ending.Next = r.command(cmp.Or(out.Result.Next, "resume"))
		if out.Status == engine.StatusFail {
			ending.Next = r.command("retry")
		}
	case out.Verdict == engine.Failed:
		ending.Status, ending.Detail, ending.Next = engine.Blocked, out.Result.Error, r.command("resume")
	default:
		ending.Status, ending.Commit = engine.Completed, r.landing().New
	}
	return ending, nil
}

// closed reports whether the steps are all on record and the task was told: the
// worktree may be gone already.
func (r *Runner) closed() bool {
	for _, e := range r.Journal.Events() {
		if e.Type == event.TaskClosed || e.Type == event.TaskReleased {
			return true
		}
	}
	return false
}

// landing is what this session put on its target last, if it did.
func (r *Runner) landing() event.Landing {
	var last event.Landing
	for _, e := range r.Journal.Events() {
		var l event.Landing
		if e.Type == event.LandDone && e.Decode(&l) == nil {
			last = l
		}
	}
	return last
}

// end tells the tracker, clears up and records the ending, in this order:
// whatever is cut off is done again by the next run of the session.
func (r *Runner) end(ctx context.Context, e Outcome) error {
	switch e.Status {
	case engine.Completed:
		return r.complete(ctx, e)
	case engine.Waiting:
		return r.wait(ctx, e)
	case engine.Interrupted, engine.Cancelled: // who cancels takes the session over
		return r.emit(event.SessionStopped, r.ended(e))
	}
	if err := r.Tracker.Block(ctx, fmt.Sprintf("coven: %s at %s: %s", e.Status, e.Step, e.Detail)); err != nil {
		return err
	}
	if err := r.emit(event.TaskBlocked, event.Text{Text: e.Detail}); err != nil {
		return err
	}
	if e.Status == engine.StatusFail {
		return r.emit(event.SessionFailed, r.ended(e))
	}
	return r.emit(event.SessionBlocked, r.ended(e))
}

// wait records that the session waits. That its budget is spent is said on the
// task, too: whoever plans the work may not look at sessions.
func (r *Runner) wait(ctx context.Context, e Outcome) error {
	if e.Reason == budgetReason {
		if err := r.Tracker.Note(ctx, fmt.Sprintf("coven: waiting (budget) at %s: %s; next: %s", e.Step, e.Detail, e.Next)); err != nil {
			return err
		}
	}
	return r.emit(event.SessionWaiting, event.Waiting{Reason: e.Reason, Detail: e.Detail, Next: e.Next, Step: e.Step, More: e.More, Until: e.Until})
}

// complete closes a task whose change has landed; one without a change goes
// back to where it was.
func (r *Runner) complete(ctx context.Context, e Outcome) error {
	failpoint.Point("complete.begin")
	if err := r.finish(ctx, e); err != nil {
		return err
	}
	failpoint.Point("complete.closed")
	rescue, err := r.Ground.Leave(ctx, r.landing().Tip)
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

func (r *Runner) finish(ctx context.Context, e Outcome) error {
	if e.Commit == "" {
		if err := r.Tracker.Release(ctx, ""); err != nil || r.closed() {
			return err
		}
		return r.emit(event.TaskReleased, nil)
	}
	if err := r.Tracker.Close(ctx, e.Summary, e.Commit); err != nil || r.closed() {
		return err // it may be on record already
	}
	return r.emit(event.TaskClosed, event.Text{Text: e.Summary})
}

func (r *Runner) ended(e Outcome) event.Ended {
	return event.Ended{Summary: e.Summary, Commit: e.Commit, Reason: e.Detail, Next: e.Next, Step: e.Step}
}

func (r *Runner) emit(t event.Type, data any) error {
	return r.Journal.Append(event.Event{Type: t}, data)
}

// command is what a person types next about this task. what is a verb, and its
// arguments after the task.
func (r *Runner) command(what string) string {
	verb, arguments, _ := strings.Cut(what, " ")
	return strings.TrimSpace("coven " + verb + " " + shellword.Word(r.Task) + " " + arguments)
}
