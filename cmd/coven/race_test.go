//go:build race

package main

// raced says that this test binary looks for races, which makes it slow.
const raced = true
