//go:build race

package session

// racing reports whether the race detector is enabled.
const racing = true
