package worktree

// Exit codes and next commands of this package's errors: see internal/exit.

// NextCommand returns the command that lists what is left over.
func (e *LeftoverError) NextCommand() string { return "coven worktree list" }
