package control

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/runner"
)

// ExitOf is the exit code of an ending.
func ExitOf(e runner.Outcome) int {
	switch e.Status {
	case event.StatusCompleted:
		return exit.OK
	case event.StatusInterrupted:
		return exit.Interrupted
	case event.StatusWaiting:
		switch e.Reason {
		case event.WaitLimit:
			return exit.Limit
		case event.WaitBudget:
			return exit.Budget
		}
		return exit.Person
	case event.StatusBlocked:
		return exit.Person
	}
	return exit.Failed
}
