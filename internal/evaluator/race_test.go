//go:build race

package evaluator

// racing means that the race detector looks.
const racing = true
