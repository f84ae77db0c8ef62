//go:build !race

package evaluator

// racing reports whether the race detector is enabled.
const racing = false
