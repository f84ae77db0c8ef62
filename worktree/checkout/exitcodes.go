package checkout

import "github.com/coven-run/coven/internal/exit"

// CommandExit returns exit.Person: the checkout is the person's.
func (e *Error) CommandExit() int { return exit.Person }
