package gate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/permission"
)

// maxSubject is how much of a command an event and a screen hold, in runes.
const maxSubject = 200

// subject is what a call acts on.
type subject struct {
	permission permission.Name
	path       string
	command    string
	err        error // the call is not understood
}

// tool says which permission a tool of the agent CLI needs and which of its
// arguments names what it acts on.
type tool struct {
	permission permission.Name
	argument   string
}

// tools are the tools that the gate knows. One that is not here is denied.
func tools(name string) (tool, bool) {
	switch name {
	case "Read":
		return tool{permission.FileRead, "file_path"}, true
	case "Write", "Edit":
		return tool{permission.FileWrite, "file_path"}, true
	case "NotebookEdit":
		return tool{permission.FileWrite, "notebook_path"}, true
	case "Bash":
		return tool{permission.BashExecute, "command"}, true
	}
	return tool{}, false
}

func describe(call Call) subject {
	t, ok := tools(call.Tool)
	if !ok {
		return subject{permission: permission.Unknown}
	}
	var arguments map[string]any
	if err := json.Unmarshal(call.Input, &arguments); err != nil {
		return subject{permission: t.permission, err: fmt.Errorf("its input is not a JSON object")}
	}
	value, ok := arguments[t.argument].(string)
	if !ok || value == "" {
		return subject{permission: t.permission, err: fmt.Errorf("its input has no %s", t.argument)}
	}
	if t.permission == permission.BashExecute {
		return subject{permission: t.permission, command: value}
	}
	return subject{permission: t.permission, path: value}
}

// named is what a call of a tool that the gate does not know seems to act on. It is
// for people to read, and decides nothing.
func named(call Call) subject {
	var arguments struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
	}
	if json.Unmarshal(call.Input, &arguments) != nil {
		return subject{}
	}
	return subject{path: arguments.FilePath, command: arguments.Command}
}

// changes reports whether the action can change files.
func (s subject) changes() bool {
	return s.permission == permission.FileWrite || s.permission == permission.BashExecute
}

// text is one short line for events and screens.
func (s subject) text() string {
	line := strings.Join(strings.Fields(s.path+s.command), " ")
	if runes := []rune(line); len(runes) > maxSubject {
		return string(runes[:maxSubject]) + "…"
	}
	return line
}

// Summary says in a few words what a call does: "Write src/app.ts".
func Summary(call Call, root string) string {
	s := describe(call)
	if s.permission == permission.Unknown {
		s = named(call)
	}
	text := s.text()
	if s.path != "" {
		text = strings.TrimPrefix(text, root+"/")
	}
	return strings.TrimSpace(call.Tool + " " + text)
}
