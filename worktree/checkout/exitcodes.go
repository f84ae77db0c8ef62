package checkout

import "github.com/coven-run/coven/internal/exit"

// ExitCode returns exit.Person: the checkout is the person's.
func (e *Error) ExitCode() int { return exit.Person }
