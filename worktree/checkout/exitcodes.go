package checkout

import "github.com/coven-run/coven/internal/exit"

// CommandExit returns exit.Person, because the checkout belongs to a person.
func (e *Error) CommandExit() int { return exit.Person }
