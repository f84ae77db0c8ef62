//go:build !race

package main

// racing means that the race detector looks.
const racing = false
