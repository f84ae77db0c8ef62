package worktree

import "github.com/coven-run/coven/internal/exit"

// Exit codes and next commands of this package's errors: see internal/exit.

// CommandExit returns exit.Person.
func (e *ClaimedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that lists sessions.
func (e *ClaimedError) NextCommand() string { return "coven status" }

// NextCommand returns the command that lists what is left over.
func (e *LeftoverError) NextCommand() string { return "coven worktree list" }

// NextCommand returns the command that shows why, if it still fails.
func (e *FetchError) NextCommand() string { return "git fetch" }
