package main

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// exitOf is the exit code of an ending.
func exitOf(e runner.Outcome) int {
	switch e.Status {
	case engine.Completed:
		return exit.OK
	case engine.Interrupted:
		return exit.Interrupted
	case engine.Waiting:
		switch e.Reason {
		case event.WaitLimit:
			return exit.Limit
		case event.WaitBudget:
			return exit.Budget
		}
		return exit.Person
	case engine.Blocked:
		return exit.Person
	}
	return exit.Failed
}
