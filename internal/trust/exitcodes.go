package trust

import "github.com/coven-run/coven/internal/exit"

// ExitCode returns exit.Usage.
func (e *Error) ExitCode() int { return exit.Usage }

// NextCommand returns what helps.
func (e *Error) NextCommand() string { return e.Next }
