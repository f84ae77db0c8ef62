package config

import (
	"strings"

	"github.com/coven-run/coven/internal/config/yamldoc"
)

// MaxTasks is the maximum number of tasks that run at once.
const MaxTasks = 64

// States returns the states of a task for which notices can be configured.
func States() []string {
	return []string{"waiting", "blocked", "failed", "completed", "cancelled", "interrupted"}
}

// NeedyStates returns the states of a task that needs a person, which notices can announce.
func NeedyStates() []string { return []string{"waiting", "blocked", "failed"} }

// announced checks the states of notices.on.
func (r reader) announced(states []string) {
	for i, state := range r.doc.Items(r.at("notices.on")) {
		if i < len(states) {
			r.doc.OneOf(yamldoc.TextAt(state, states[i]), NeedyStates()...)
		}
	}
}

// notices checks the notices. They are not allowed in a project's file, because they run outside of the
// sandbox, and a repository must not choose such commands.
func (r reader) notices(all []Notice) {
	at := r.at("notify")
	items := r.doc.Items(at)
	if !at.Set() || len(items) != len(all) {
		return
	}
	for i, n := range all {
		if strings.TrimSpace(n.Command) == "" {
			r.doc.Fail(at, "a notice needs a command", "")
		}
		for j, state := range r.doc.Items(r.doc.Key(items[i], "on")) {
			if j < len(n.On) {
				r.doc.OneOf(yamldoc.TextAt(state, n.On[j]), States()...)
			}
		}
	}
}
