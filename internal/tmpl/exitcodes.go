package tmpl

import "github.com/coven-run/coven/internal/exit"

// ExitCode returns exit.Usage.
func (e *Error) ExitCode() int { return exit.Usage }
