//go:build !race

package worktree

// racing means that the race detector is enabled.
const racing = false
