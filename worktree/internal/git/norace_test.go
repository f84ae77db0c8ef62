//go:build !race

package git

// racing means that the race detector looks.
const racing = false
