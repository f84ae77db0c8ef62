package worktree

import "github.com/coven-run/coven/worktree/internal/git"

// DroppedVariables returns the names of the variables in environ that would make git, if a person runs it, use another
// repository, or other parts of one. coven ignores them.
func DroppedVariables(environ []string) []string { return git.Dropped(environ) }
