package config

import (
	"strings"

	"github.com/coven-run/coven/internal/yamldoc"
)

// MostTasks is the most tasks that can run at once.
const MostTasks = 64

// States are the states of a task that a notice can be about.
func States() []string {
	return []string{"waiting", "blocked", "failed", "completed", "cancelled", "interrupted"}
}

// notice is a Notice as a file has it.
type notice struct {
	Command text               `yaml:"command" need:"true" about:"given to sh -c"`
	On      yamldoc.At[[]text] `yaml:"on" about:"the states; all but interrupted"`
}

// usersOnly says that a project's file has a key which a repository is not asked
// about.
func usersOnly[T any](doc *yamldoc.Document, given yamldoc.At[T], key string) {
	doc.Fail(given, key+" is taken from the user's file only", "move it to $XDG_CONFIG_HOME/coven/config.yaml")
}

// notices reads the notices. A project's file has none: they run outside every
// fence, and a repository is not asked what to run there.
func notices(doc *yamldoc.Document, given yamldoc.At[[]notice], before []Notice, project bool) []Notice {
	if !given.Set() {
		return before
	}
	if project {
		usersOnly(doc, given, "notify")
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
