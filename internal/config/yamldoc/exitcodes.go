package yamldoc

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// CommandExit returns exit.Usage.
func (e Error) CommandExit() int { return exit.Usage }

// NextCommand returns the command that opens the file at the error.
func (e Error) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// CommandExit returns exit.Usage.
func (e Errors) CommandExit() int { return exit.Usage }

// NextCommand returns the command that opens the file at the first error.
func (e Errors) NextCommand() string {
	if len(e) == 0 {
		return ""
	}
	return e[0].NextCommand()
}
