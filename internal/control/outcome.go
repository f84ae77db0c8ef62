package control

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/runner"
)

// Outcome is the result of running a session, from its start or resumption until it stopped.
type Outcome struct {
	Task    string
	Session string // its ID
	Status  event.Status
	Reason  event.WaitReason // of Status waiting
	Detail  string           // one line for a person
	Next    string           // the command that continues; optional
	Summary string
	Commit  string // the commit that landed
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

// WaitsInChat reports whether the turn of a chat is over, so that the author of the message reads the
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
