// Package exit defines coven's exit codes and errors that carry one.
//
// An error returns coven's exit code with the method CommandExit, and the next
// command with the method NextCommand. Errors of other packages implement these methods
// themselves; an error without them is a plain failure (Failed) with no advice. The
// outermost error that has a method decides. The method is not called ExitCode, because
// *exec.ExitError has that method for another program's exit code.
package exit

import (
	"errors"
	"fmt"
	"slices"
)

// The exit codes of every command.
const (
	OK          = 0
	Failed      = 1   // a task failed, a validation found errors, or a named thing does not exist
	Usage       = 2   // usage, configuration or trust
	Person      = 3   // blocked or waiting for you
	Budget      = 4   // budget spent
	Limit       = 5   // a rate limit that coven does not wait for
	Interrupted = 130 // by a signal
)

// Help is the table that every command's help ends with.
const Help = `Exit codes:
  0    all completed
  1    a task failed, a validation found errors, or a named thing does not exist
  2    usage, configuration or trust
  3    blocked or waiting for you
  4    budget spent
  5    a rate limit that coven does not wait for
  130  interrupted`

// Error is an error with an exit code and a next command.
type Error struct {
	Exit int
	Err  error  // nil if the command has already printed everything
	Next string // optional
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Exit)
	}
	return e.Err.Error()
}

// Unwrap returns the error that carries the message.
func (e *Error) Unwrap() error { return e.Err }

// CommandExit returns the exit code.
func (e *Error) CommandExit() int { return e.Exit }

// NextCommand returns the next command. If it is not set, it returns that of the wrapped error.
func (e *Error) NextCommand() string {
	if e.Next == "" && e.Err != nil {
		return Next(e.Err)
	}
	return e.Next
}

// Sentinel returns an error for errors.Is with an exit code and a next command.
func Sentinel(code int, next, text string) error {
	return &Error{Exit: code, Err: errors.New(text), Next: next}
}

// Usagef returns an error about the command line, the configuration or trust.
func Usagef(next, format string, args ...any) error {
	return &Error{Exit: Usage, Err: fmt.Errorf(format, args...), Next: next}
}

// Failedf returns an error for a failure or for a named thing that does not exist.
func Failedf(next, format string, args ...any) error {
	return &Error{Exit: Failed, Err: fmt.Errorf(format, args...), Next: next}
}

// Personf returns an error that requires a person to act first.
func Personf(next, format string, args ...any) error {
	return &Error{Exit: Person, Err: fmt.Errorf(format, args...), Next: next}
}

// Status returns an error with an exit code and no message. It returns nil for OK.
func Status(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Exit: code}
}

// IsSilent reports whether the command has already printed everything about the error.
func IsSilent(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Err == nil
}

// Code returns the exit code of an error. It is OK for nil, and Failed for an error without a code.
func Code(err error) int {
	if err == nil {
		return OK
	}
	var coded interface{ CommandExit() int }
	if errors.As(err, &coded) {
		return coded.CommandExit()
	}
	return Failed
}

// Next returns the next command of an error, or "" if it has none.
func Next(err error) string {
	var advised interface{ NextCommand() string }
	if errors.As(err, &advised) {
		return advised.NextCommand()
	}
	return ""
}

// Worse returns the exit code for two tasks, by severity: 130 > 2 > 1 > 4 > 5 > 3 > 0. Any other
// code counts as Failed.
func Worse(a, b int) int {
	order := []int{OK, Person, Limit, Budget, Failed, Usage, Interrupted}
	rank := func(code int) int {
		if i := slices.Index(order, code); i >= 0 {
			return i
		}
		return slices.Index(order, Failed)
	}
	return order[max(rank(a), rank(b))]
}
