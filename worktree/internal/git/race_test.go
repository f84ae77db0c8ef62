//go:build race

package git

// racing means that the race detector is enabled.
const racing = true
