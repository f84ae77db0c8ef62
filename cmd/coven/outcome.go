package main

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// exitOf is the exit code of an ending.
func exitOf(e runner.Outcome) int {
	switch e.Status {
	case engine.Completed:
		return exitOK
	case engine.Interrupted:
		return exitInterrupted
	case engine.Waiting:
		switch e.Reason {
		case event.WaitLimit:
			return exitLimit
		case event.WaitBudget:
			return exitBudget
		}
		return exitPerson
	case engine.Blocked:
		return exitPerson
	}
	return exitFailed
}
