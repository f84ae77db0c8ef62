package worktree

// Exit codes and next commands of this package's errors: see internal/exit.

// NextCommand returns the command that lists leftovers.
func (e *LeftoverError) NextCommand() string { return "coven worktree list" }
