package control

import (
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Operation is an action on a session. Its text is the verb of a refusal.
type Operation string

// The operations.
const (
	OpRun     Operation = "run"
	OpResume  Operation = "resume"
	OpRetry   Operation = "retry"
	OpApprove Operation = "approve"
	OpRevise  Operation = "revise"
	OpReject  Operation = "reject"
	OpCancel  Operation = "cancel"
	OpMessage Operation = "attach to" // send a message to its agent
	OpRevert  Operation = "revert"    // restore its worktree from a snapshot
	OpChat    Operation = "chat in"   // continue the conversation
)

// Refusal returns why an operation is not possible in a session's current state: a *StateError, a
// session.ErrBusy, or an error about a session that is no chat. It returns nil if the operation is possible
// according to the record of the session.
func Refusal(op Operation, v session.View) error {
	task := shellword.Word(v.Task)
	refused := &StateError{Operation: op, Task: v.Task, State: StateOf(v), Code: exit.Failed}
	switch op {
	case OpRun, OpResume, OpRetry:
		return continueRefusal(refused, v)
	case OpApprove, OpRevise:
		if decidable(op, v) {
			return nil
		}
	case OpReject, OpCancel:
		if dismissible(v) || op == OpCancel && v.Status == session.Running {
			return nil
		}
	case OpRevert:
		if v.Status == session.Running {
			return Busy(v, BusyNext(op)+" "+task)
		}
		if dismissible(v) {
			return nil
		}
	case OpChat:
		return chatRefusal(refused, v)
	case OpMessage:
		if v.Status == session.Running {
			return nil
		}
		refused.Code = exit.Person
	}
	refused.Next = "coven why " + task
	return refused
}

// continueRefusal returns why a session cannot be run, resumed or retried.
func continueRefusal(refused *StateError, v session.View) error {
	op, task := refused.Operation, shellword.Word(v.Task)
	switch shown := v.Shown(); {
	case v.Status == session.Running:
		return Busy(v, BusyNext(op)+" "+task)
	case shown.Status == session.Damaged:
		refused.Code, refused.Next, refused.Detail = exit.Person, NextOf(v), v.Damage
	case op == OpRun && v.Status == session.Completed && v.Commit != "" && v.Info.Tracker == project.NoTracker:
		refused.Next, refused.Detail = "coven why "+task, "coven run -p TEXT runs its text again"
	case op == OpRun:
		return nil // as a new session, if this one cannot continue
	case v.Status == session.Completed: // the tracker may have closed the task
		refused.Next = "coven why " + task
	case v.Status == session.Cancelled, v.Status == session.Failed && op == OpResume:
		refused.Next, refused.Detail = again(v), DetailOf(v)
	case (WaitsForReview(v) || WaitsForMessage(v)) && op == OpResume:
		refused.Code, refused.Next, refused.Detail = exit.Person, NextOf(v), DetailOf(v)
	default:
		return nil
	}
	return refused
}

// BusyNext returns the command to suggest when another coven runs the session.
func BusyNext(op Operation) string {
	switch op {
	case OpResume:
		return "coven logs -f"
	case OpRetry:
		return "coven cancel"
	}
	return "coven attach"
}

// WaitsForReview reports whether a session waits for a person to decide on its change.
func WaitsForReview(v session.View) bool {
	return v.Status == session.Waiting && v.Reason == event.WaitReview
}

// WaitsForMessage reports whether a chat without a change waits for the next message.
func WaitsForMessage(v session.View) bool {
	return v.Status == session.Waiting && v.Reason == event.WaitMessage
}

// decidable reports whether a change waits for a review, or can be revised because a step of the grimoire is blocked.
func decidable(op Operation, v session.View) bool {
	return WaitsForReview(v.Shown()) && v.Review != nil || v.WaitsForHost() ||
		op == OpRevise && v.Status == session.Blocked && v.Failing != "" && !event.IsSetup(v.Failing)
}

// dismissible reports whether a session is neither over nor running.
func dismissible(v session.View) bool {
	switch v.Status {
	case session.Waiting, session.Blocked, session.Interrupted:
		return true
	case session.Failed:
		return v.Failing != "" // failed by its grimoire, so its worktree still exists
	}
	return false
}

// StateError refuses an operation that is not possible in the state of a session.
type StateError struct {
	Operation Operation
	Task      string
	State     string // as returned by StateOf
	Detail    string // why the session is in that state; may be empty
	Code      int
	Next      string
}

// Error implements error.
func (e *StateError) Error() string {
	text := fmt.Sprintf("cannot %s task %s: it is %s", e.Operation, e.Task, e.State)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// CommandExit returns the exit code.
func (e *StateError) CommandExit() int { return e.Code }

// NextCommand returns the command that helps.
func (e *StateError) NextCommand() string { return e.Next }

// Busy returns an error that another coven is running the session. It wraps session.ErrBusy.
func Busy(v session.View, next string) error {
	return exit.Personf(next, "task %s: %w", v.Task, session.ErrBusy)
}

// ChangedError reports that a session or its change is no longer in the state that the person decided
// about.
type ChangedError struct {
	Task  string
	State string // current state of the session; empty if the worktree has changed
}

// Error implements error.
func (e *ChangedError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("the worktree of task %s has changed since you reviewed it", e.Task)
	}
	return fmt.Sprintf("task %s has changed meanwhile: it is %s", e.Task, e.State)
}

// CommandExit returns exit.Person.
func (e *ChangedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that shows the current state.
func (e *ChangedError) NextCommand() string {
	if e.State == "" {
		return "coven review " + shellword.Word(e.Task)
	}
	return "coven why " + shellword.Word(e.Task)
}

// OpenFindingsError refuses to approve a change with open error findings that the person
// did not accept.
type OpenFindingsError struct {
	Task     string
	Findings []event.Finding
}

// Error implements error. It lists the findings.
func (e *OpenFindingsError) Error() string {
	return fmt.Sprintf("task %s has %s; without --accept-findings it does not land:\n%s", e.Task, oneline.Count(len(e.Findings), "open error finding"), terminal.FindingLines(e.Findings))
}

// NextCommand returns the command that approves the change with its findings.
func (e *OpenFindingsError) NextCommand() string {
	return "coven approve " + shellword.Word(e.Task) + " --accept-findings"
}

// ErrLanded refuses an operation on a session whose change has landed.
var ErrLanded = errors.New("only the steps after that can continue")

func landed(v session.View, commit string) error {
	return exit.Personf("coven resume "+shellword.Word(v.Task), "task %s has landed as %.10s: %w", v.Task, commit, ErrLanded)
}
