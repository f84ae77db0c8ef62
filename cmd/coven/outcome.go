package main

import (
	"github.com/coven-run/coven/runner"
)

// exitOf is the exit code of an ending.
func exitOf(e runner.Ending) int {
	switch e.Status {
	case runner.Completed:
		return exitOK
	case runner.Interrupted:
		return exitInterrupted
	case runner.Waiting:
		switch e.Reason {
		case "limit":
			return exitLimit
		case "budget":
			return exitBudget
		}
		return exitPerson
	case runner.Blocked:
		return exitPerson
	}
	return exitFailed
}
