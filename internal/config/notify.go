package config

import (
	"strings"

	"github.com/coven-run/coven/internal/yamldoc"
)

// MaxTasks is the maximum number of tasks that run at once.
const MaxTasks = 64

// States returns the states of a task that a notice can be about.
func States() []string {
	return []string{"waiting", "blocked", "failed", "completed", "cancelled", "interrupted"}
}

// notice is a Notice in a file.
type notice struct {
	Command text               `yaml:"command" need:"true" about:"given to sh -c"`
	On      yamldoc.At[[]text] `yaml:"on" about:"states; default: all but interrupted"`
}

// usersOnly reports whether a file may have a key that is reserved to the user's file,
// and records an error if it may not. A user's file inside the repository counts as
// the repository's.
func usersOnly[T any](doc *yamldoc.Document, f file, given yamldoc.At[T], key string) bool {
	if !given.Set() || !f.theirs {
		return true
	}
	hint := "move it to $XDG_CONFIG_HOME/coven/config.yaml"
	if !f.inside {
		hint = "this file is inside the repository: export XDG_CONFIG_HOME=DIR, outside of it"
	}
	doc.Fail(given, key+" is allowed in the user's file only", hint)
	return false
}

// notices reads the notices. A project's file must not have any: they run outside the
// sandbox, and a repository must not choose what runs there.
func notices(doc *yamldoc.Document, f file, given yamldoc.At[[]notice], before []Notice) []Notice {
	if !usersOnly(doc, f, given, "notify") || !given.Set() {
		return before
	}
	var list []Notice
	for _, n := range given.Value {
		one := Notice{Command: n.Command.Value}
		if strings.TrimSpace(one.Command) == "" {
			doc.Fail(given, "a notice needs a command", "")
		}
		for _, state := range n.On.Value {
			if doc.OneOf(state, States()...) {
				one.On = append(one.On, state.Value)
			}
		}
		list = append(list, one)
	}
	return list
}
