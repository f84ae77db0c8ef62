package accounts

import (
	"github.com/coven-run/coven/internal/exit"
)

// LoginError means that the API rejected the login of an agent CLI. The session is interrupted. After a
// login, its agent continues the conversation.
type LoginError struct {
	Provider string
	Reason   string
	Login    string // the command that logs in, empty if unknown
}

// Error implements error.
func (e *LoginError) Error() string { return e.Reason }

// CommandExit returns exit.Usage.
func (e *LoginError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that logs in.
func (e *LoginError) NextCommand() string { return e.Login }

// Then returns the commands that log in and continue with resume.
func (e *LoginError) Then(resume string) string {
	if e.Login == "" {
		return resume
	}
	return e.Login + ", then " + resume
}
