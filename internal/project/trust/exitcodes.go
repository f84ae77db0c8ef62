package trust

import "github.com/coven-run/coven/internal/exit"

// CommandExit returns exit.Usage.
func (e *Error) CommandExit() int { return exit.Usage }

// NextCommand returns the next command.
func (e *Error) NextCommand() string { return e.Next }
