package project

import (
	"github.com/coven-run/coven/internal/task"
)

// Item is a task to run.
type Item struct {
	Task    task.Task
	Tracker task.Tracker // nil for an ad-hoc prompt
	Prompt  string       // of a new ad-hoc task, which no session has yet; empty: another task
}

// NoTracker is what the session of an ad-hoc prompt records as its tracker.
const NoTracker = "none"

// TrackerName returns the name that a session records for its tracker.
func (item Item) TrackerName() string {
	if item.Tracker == nil {
		return NoTracker
	}
	return item.Tracker.Kind()
}
