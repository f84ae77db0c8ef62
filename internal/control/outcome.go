package control

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// Outcome is how a stretch of a session ended: what it did between its start or
// resumption and its next end.
type Outcome struct {
	Task    string
	Session string // its ID
	Status  event.Status
	Reason  event.WaitReason // of waiting
	Detail  string           // one line for a person
	Next    string           // the command that continues; empty: there is none
	Summary string
	Commit  string // what landed
}

// outcomeOf returns the outcome of a session as the runner reports it.
func outcomeOf(task, id string, o runner.Outcome) Outcome {
	return Outcome{
		Task: task, Session: id, Status: o.Status, Reason: o.Reason, Detail: o.Detail, Next: o.Next, Summary: o.Summary, Commit: o.Commit,
	}
}

// WaitsForReview reports whether a person must decide on the change.
func (o Outcome) WaitsForReview() bool {
	return o.Status == session.Waiting && o.Reason == event.WaitReview
}

// WaitsInChat reports whether the turn of a chat is over: the user who wrote the message reads the
// answer.
func (o Outcome) WaitsInChat(info event.Session) bool {
	return info.Chat && o.Status == session.Waiting && (o.Reason == event.WaitMessage || o.Reason == event.WaitReview)
}

// ExitCode returns the exit code of a command that ran the session.
func (o Outcome) ExitCode() int {
	switch o.Status {
	case session.Completed:
		return exit.OK
	case session.Interrupted:
		return exit.Interrupted
	case session.Waiting:
		switch o.Reason {
		case event.WaitLimit:
			return exit.Limit
		case event.WaitBudget:
			return exit.Budget
		}
		return exit.Person
	case session.Blocked:
		return exit.Person
	}
	return exit.Failed
}
