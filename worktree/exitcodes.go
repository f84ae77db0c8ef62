package worktree

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/shellword"
)

// Exit codes and next commands of this package's errors: see internal/exit.

// CommandExit returns exit.Person.
func (e *BusyError) CommandExit() int { return exit.Person }

// NextCommand returns the command that removes the lock files.
func (e *BusyError) NextCommand() string {
	command := "rm"
	for _, file := range e.Files() {
		command += " " + shellword.Word(file)
	}
	return command
}

// CommandExit returns exit.Person.
func (e *ClaimedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that lists sessions.
func (e *ClaimedError) NextCommand() string { return "coven status" }

// CommandExit returns exit.Usage.
func (e *BareError) CommandExit() int { return exit.Usage }

// NextCommand returns a command that creates a checkout.
func (e *BareError) NextCommand() string { return "git clone . ../checkout" }

// NextCommand returns the command that lists what is left over.
func (e *LeftoverError) NextCommand() string { return "coven worktree list" }

// NextCommand returns the command that shows why, if it still fails.
func (e *FetchError) NextCommand() string { return "git fetch" }
