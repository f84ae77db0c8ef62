package yamldoc

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/shellword"
)

// ExitCode returns exit.Usage.
func (e Error) ExitCode() int { return exit.Usage }

// NextCommand returns the command that opens the file at the error.
func (e Error) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// ExitCode returns exit.Usage.
func (e Errors) ExitCode() int { return exit.Usage }

// NextCommand returns the command that opens the file at the first error.
func (e Errors) NextCommand() string {
	if len(e) == 0 {
		return ""
	}
	return e[0].NextCommand()
}
