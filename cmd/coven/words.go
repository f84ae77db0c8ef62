package main

import "github.com/coven-run/coven/runner"

// shellWord writes a word as a shell takes it.
func shellWord(word string) string { return runner.ShellWord(word) }
