//go:build !race

package worktree

// racing means that the race detector looks.
const racing = false
