package main

import (
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
)

// shellWord writes a word as a shell takes it.
func shellWord(word string) string { return shellword.Word(word) }

// printable makes a text safe for a terminal.
func printable(text string) string { return terminal.Printable(text) }

// printableLines is printable for each line of a text.
func printableLines(text string) string { return terminal.PrintableLines(text) }

// oneLine makes a text one line.
func oneLine(text string) string { return oneline.Of(text) }
