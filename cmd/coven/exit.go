package main

import (
	"errors"
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/registry"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/trust"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/worktree"
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

// aboutTrust says whether an error is about what may run.
func aboutTrust(err error) bool {
	return errors.As(err, new(*registry.UntrustedError)) || errors.As(err, new(*registry.MismatchError)) ||
		errors.As(err, new(*registry.BrokenError)) || errors.As(err, new(*registry.CacheError)) || errors.As(err, new(*trust.Error))
}

// trustHint says what to do about such an error.
func trustHint(err error) string {
	store, broken, mismatch := (*trust.Error)(nil), (*registry.BrokenError)(nil), (*registry.MismatchError)(nil)
	_, open := trustable(err)
	switch {
	case open:
		return "coven trust"
	case errors.As(err, &mismatch):
		return nextPlugin(mismatch.Plugin)
	case errors.As(err, &broken):
		return nextPlugin(broken.Plugin)
	case errors.As(err, &store):
		return store.Next
	}
	return "export XDG_CACHE_HOME=DIR, a directory of yours outside of the repository"
}

// classify gives an error of the parts its exit code.
func classify(err error) int {
	backend, conflict, corrupt := (*task.BackendError)(nil), (*task.ConflictMarkersError)(nil), (*task.CorruptError)(nil)
	checkout := (*worktree.CheckoutError)(nil)
	switch {
	case errors.As(err, new(*session.DamagedError)):
		return exitPerson
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case aboutTrust(err):
		return exitUsage
	case errors.As(err, new(*worktree.BusyError)):
		return exitPerson
	case errors.As(err, &backend), errors.As(err, &conflict), errors.As(err, &corrupt):
		return exitUsage
	case errors.Is(err, worktree.ErrNotRepository), errors.Is(err, worktree.ErrNoCommits), errors.Is(err, worktree.ErrBare),
		errors.Is(err, worktree.ErrDetached), errors.Is(err, worktree.ErrTaskBranch), errors.Is(err, worktree.ErrUnknownBranch):
		return exitUsage
	case errors.As(err, new(config.Errors)), errors.Is(err, plugins.ErrUnknown), grimoires.IsInvalid(err):
		return exitUsage
	case errors.Is(err, task.ErrInvalid), errors.As(err, new(*task.CycleError)), errors.As(err, new(*task.RedirectError)):
		return exitUsage
	case errors.As(err, &checkout), errors.Is(err, worktree.ErrClaimed), errors.Is(err, task.ErrClaimed),
		errors.Is(err, task.ErrNotClaimable), errors.As(err, new(*task.BlockedError)):
		return exitPerson
	}
	return exitFailed
}

// hint says what to do about an error, when the error does not say it itself.
func hint(err error) string {
	blocked, status := (*task.BlockedError)(nil), (*task.StatusError)(nil)
	damaged, link := (*session.DamagedError)(nil), (*regularfile.LinkError)(nil)
	switch {
	case errors.As(err, &damaged):
		return nextDamaged(damaged)
	case errors.As(err, &link):
		return linkHint(link)
	case errors.As(err, &blocked):
		return "coven why " + shellWord(blocked.ID)
	case errors.As(err, &status):
		return "coven task show " + shellWord(status.ID)
	case errors.Is(err, task.ErrNotFound):
		return "coven task list"
	case errors.Is(err, worktree.ErrNoCommits):
		return "git commit"
	case errors.Is(err, worktree.ErrUnknownBranch):
		return "git branch"
	case errors.Is(err, worktree.ErrNotRepository):
		return "go to a git repository, or make one: git init"
	case errors.Is(err, worktree.ErrClaimed):
		return "coven status"
	case aboutTrust(err):
		return trustHint(err)
	case errors.Is(err, process.ErrNotFound):
		return installer(err) + ", then coven resume"
	}
	return ""
}
