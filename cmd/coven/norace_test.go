//go:build !race

package main

// racing reports whether the race detector is enabled.
const racing = false
