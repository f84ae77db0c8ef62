package main

import (
	"errors"
	"fmt"
)

// The exit codes of every command.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPerson      = 3
	exitBudget      = 4
	exitLimit       = 5
	exitInterrupted = 130
)

// exitHelp is the table that every command's help ends with.
const exitHelp = `Exit codes:
  0    all completed
  1    a task failed, a validation found errors, or a named thing does not exist
  2    usage, configuration or trust
  3    blocked or waiting on a person
  4    budget spent
  5    a rate limit that will not be waited for
  130  interrupted`

// exitError carries the exit code of a command that did its work and has
// nothing to add, or of an error that is not a plain failure.
type exitError struct {
	code int
	err  error // nil: everything was said already
	next string
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage says that the command line or the configuration is at fault.
func usage(next, format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...), next: next}
}

// missing says that a named thing does not exist.
func missing(next, format string, args ...any) error {
	return &exitError{code: exitFailed, err: fmt.Errorf(format, args...), next: next}
}

// person says that a person has to act first.
func person(next, format string, args ...any) error {
	return &exitError{code: exitPerson, err: fmt.Errorf(format, args...), next: next}
}

// status is an exit without a word.
func status(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// codeOf maps an error to its exit code.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if e := (*exitError)(nil); errors.As(err, &e) {
		return e.code
	}
	return classify(err)
}

// worse orders the codes of several tasks: 130 > 2 > 1 > 4 > 5 > 3 > 0.
func worse(a, b int) int {
	for _, code := range []int{exitInterrupted, exitUsage, exitFailed, exitBudget, exitLimit, exitPerson} {
		if a == code || b == code {
			return code
		}
	}
	return exitOK
}
