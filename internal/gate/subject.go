package gate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/permission"
)

// maxSubject limits the part of a command that events and screens show, in runes.
const maxSubject = 200

// maxReason limits the reason of a decision, which may name a path, in runes.
const maxReason = 2000

// subject is the object of a call.
type subject struct {
	permission permission.Name
	path       string
	command    string
	other      string // of another permission
	lingers    bool   // what the command starts may outlast the call
	err        error  // the call cannot be parsed
}

// tool describes a tool of the agent CLI: the permission that it needs, and the
// argument that names its subject.
type tool struct {
	permission permission.Name
	argument   string
}

// requestApproval is the tool with which an agent asks a person. Everybody may ask.
const (
	requestApproval                 = "request_approval"
	free            permission.Name = "approval"
)

// serverPrefix begins the names of the tools of coven's own MCP server, as agent CLIs name them.
const serverPrefix = "mcp__coven__"

// tools returns a known tool, of an agent CLI or of coven. Calls of other tools are denied.
func tools(name string) (tool, bool) {
	name = strings.TrimPrefix(name, serverPrefix)
	switch name {
	case "read":
		return tool{permission.FileRead, "path"}, true
	case "write", "edit":
		return tool{permission.FileWrite, "path"}, true
	case "bash":
		return tool{permission.BashExecute, "command"}, true
	case "Read":
		return tool{permission.FileRead, "file_path"}, true
	case "Write", "Edit":
		return tool{permission.FileWrite, "file_path"}, true
	case "NotebookEdit":
		return tool{permission.FileWrite, "notebook_path"}, true
	case "Bash":
		return tool{permission.BashExecute, "command"}, true
	case requestApproval:
		return tool{free, "action"}, true
	case "spawn_agent":
		return tool{permission.AgentSpawn, "agent"}, true
	case "read_note":
		return tool{permission.FileRead, "path"}, true
	case "list_notes":
		return tool{permission.CodeSearch, ""}, true
	case "semantic_search":
		return tool{permission.CodeSearch, "query"}, true
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
	if (!ok || value == "") && t.argument != "" {
		return subject{permission: t.permission, err: fmt.Errorf("its input has no %s", t.argument)}
	}
	switch t.permission {
	case permission.BashExecute:
		background, _ := arguments["run_in_background"].(bool)
		return subject{permission: t.permission, command: value, lingers: background || lingers(value)}
	case permission.FileRead, permission.FileWrite:
		return subject{permission: t.permission, path: value}
	case permission.CodeSearch: // each file that is found is checked as well
		return subject{permission: t.permission, path: ".", other: value}
	}
	return subject{permission: t.permission, other: value}
}

// lingers reports whether a shell command may leave processes behind. A detached one of which it
// gives no sign stays unnoticed.
func lingers(command string) bool {
	for _, word := range []string{"nohup", "setsid", "disown", "daemon", "systemd-run", "tmux", "screen", "at now", "batch"} {
		if strings.Contains(command, word) {
			return true
		}
	}
	plain := strings.NewReplacer("&&", "", ">&", "", "<&", "", "&>", "").Replace(command)
	return strings.Contains(plain, "&")
}

// named returns the likely subject of a call of an unknown tool. It is only displayed.
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
	return s.permission == permission.FileWrite || s.permission == permission.BashExecute || s.permission == permission.MCPCall
}

// text returns one short line for events and screens.
func (s subject) text() string {
	text := s.path + s.command
	if s.other != "" {
		text = s.other
	}
	return clip(text, maxSubject)
}

// clip returns at most the first runes of a text, in one line. Whatever an agent says goes into the
// record, and none may fill it.
func clip(text string, most int) string {
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// Summary describes a call in a few words: "Write src/app.ts".
func Summary(call Call, root string) string {
	s := describe(call)
	if s.permission == permission.Unknown || s.err != nil {
		s = named(call)
	}
	text := s.text()
	if s.path != "" {
		text = strings.TrimPrefix(text, root+"/")
	}
	return strings.TrimSpace(strings.TrimPrefix(call.Tool, serverPrefix) + " " + text)
}
