package worktree

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/shellword"
)

// What errors of this package mean for the command that they end: see internal/exit.

// ExitCode returns exit.Person.
func (e *BusyError) ExitCode() int { return exit.Person }

// NextCommand returns the command that removes the lock file.
func (e *BusyError) NextCommand() string { return "rm " + shellword.Word(e.File) }

// ExitCode returns exit.Person.
func (e *ClaimedError) ExitCode() int { return exit.Person }

// NextCommand returns the command that shows who has which task.
func (e *ClaimedError) NextCommand() string { return "coven status" }

// ExitCode returns exit.Usage.
func (e *BareError) ExitCode() int { return exit.Usage }

// NextCommand returns a command that makes a checkout.
func (e *BareError) NextCommand() string { return "git clone . ../checkout" }
