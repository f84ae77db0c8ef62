package repo

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// CommandExit returns exit.Person.
func (e *BusyError) CommandExit() int { return exit.Person }

// NextCommand returns the command that removes the lock files.
func (e *BusyError) NextCommand() string {
	command := "rm"
	for _, file := range e.Files() {
		command += " " + shellword.Word(file)
	}
	return command
}

// CommandExit returns exit.Usage.
func (e *BareError) CommandExit() int { return exit.Usage }

// NextCommand returns a command that creates a checkout.
func (e *BareError) NextCommand() string { return "git clone . ../checkout" }
