package project

import (
	"github.com/coven-run/coven/internal/task"
)

// Item is a task to run.
type Item struct {
	Task    task.Task
	Tracker task.Tracker // nil for an ad-hoc prompt
	Prompt  string       // of a new ad-hoc task without a session; otherwise empty
	Earlier string       // the ID of the last ad-hoc task with the same title, if Prompt is set and there is one
}

// NoTracker is the recorded tracker name of an ad-hoc prompt.
const NoTracker = "none"

// TrackerName returns the tracker name that a session records.
func (item Item) TrackerName() string {
	if item.Tracker == nil {
		return NoTracker
	}
	return item.Tracker.Kind()
}
