package main

import (
	"github.com/coven-run/coven/internal/task"
)

// job is a task to run.
type job struct {
	task    task.Task
	tracker task.Tracker // nil: a task of the user's own words, nobody is told
}

// untrackedName is what a session records as the tracker of a task of the
// user's own words.
const untrackedName = "none"

func (j job) trackerName() string {
	if j.tracker == nil {
		return untrackedName
	}
	return j.tracker.Kind()
}
