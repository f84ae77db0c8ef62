package main

import (
	"github.com/coven-run/coven/runner"
	runengine "github.com/coven-run/coven/runner/engine"
)

// exitOf is the exit code of an ending.
func exitOf(e runner.Outcome) int {
	switch e.Status {
	case runengine.Completed:
		return exitOK
	case runengine.Interrupted:
		return exitInterrupted
	case runengine.Waiting:
		switch e.Reason {
		case "limit":
			return exitLimit
		case "budget":
			return exitBudget
		}
		return exitPerson
	case runengine.Blocked:
		return exitPerson
	}
	return exitFailed
}
