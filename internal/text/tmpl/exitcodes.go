package tmpl

import "github.com/coven-run/coven/internal/exit"

// CommandExit returns exit.Usage.
func (e *Error) CommandExit() int { return exit.Usage }
