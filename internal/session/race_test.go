//go:build race

package session

// racing means that the race detector looks.
const racing = true
