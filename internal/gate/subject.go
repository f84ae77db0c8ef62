package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/coven-run/coven/internal/permission"
)

// maxSubject limits the part of a command that events and screens show, in runes.
const maxSubject = 200

// maxReason limits the reason of a decision, which may contain a path, in runes.
const maxReason = 2000

// subject is the object of a call.
type subject struct {
	permission permission.Name
	path       string
	command    string
	other      string // for other permissions
	shown      string // displayed instead
	lingers    bool   // processes of the command may outlast the call
	err        error  // the call cannot be parsed
}

// tool describes a tool of the agent CLI: the permission that it needs, and the
// argument that names its subject.
type tool struct {
	permission permission.Name
	argument   string
	fallback   string // default of the argument; empty if it is required
}

// requestApproval is the tool by which an agent asks a person.
const requestApproval = "request_approval"

// Names for records of actions that need no permission.
const (
	approval permission.Name = "approval" // every agent may ask
	notes    permission.Name = "notes"    // an agent's own notes
	skills   permission.Name = "skill"    // granted by the agent's definition
)

// free returns why an action needs no permission, or "" if it does.
func free(name permission.Name) string {
	return map[permission.Name]string{approval: "everybody may ask", notes: "every agent may keep notes of its own", skills: "every agent may read its skills"}[name]
}

// Subtask is the default agent of the tool subtask.
const Subtask = "build"

// serverPrefix is the prefix of coven's MCP tools in agent CLIs.
const serverPrefix = "mcp__coven__"

// SkillPrefix is the prefix of the tools by which agents read their skills.
const SkillPrefix = "skill_"

// ToolName returns the tool name of a call without the prefix that an agent CLI adds.
func ToolName(call Call) string { return strings.TrimPrefix(call.Tool, serverPrefix) }

// known lists the known tools of agent CLIs and of coven.
var known = map[string]tool{
	"Read":         {permission: permission.FileRead, argument: "file_path"},
	"Write":        {permission: permission.FileWrite, argument: "file_path"},
	"Edit":         {permission: permission.FileWrite, argument: "file_path"},
	"NotebookEdit": {permission: permission.FileWrite, argument: "notebook_path"},
	"Bash":         {permission: permission.BashExecute, argument: "command"},

	"read":  {permission: permission.FileRead, argument: "path"},
	"write": {permission: permission.FileWrite, argument: "path"},
	"edit":  {permission: permission.FileWrite, argument: "path"},
	"ls":    {permission: permission.FileRead, argument: "path", fallback: "."},
	"glob":  {permission: permission.CodeSearch, argument: "pattern"},
	"grep":  {permission: permission.CodeSearch, argument: "pattern"},
	"bash":  {permission: permission.BashExecute, argument: "command"},
	"fetch": {permission: permission.NetFetch, argument: "url"},
	"todo":  {permission: notes},

	"read_note":       {permission: permission.FileRead, argument: "path"},
	"list_notes":      {permission: permission.CodeSearch},
	"semantic_search": {permission: permission.CodeSearch, argument: "query"},
	"spawn_agent":     {permission: permission.AgentSpawn, argument: "agent"},
	"send_message":    {permission: permission.AgentMessage, argument: "channel"},
	"read_messages":   {permission: permission.AgentMessage, argument: "channel"},
	"subtask":         {permission: permission.AgentSpawn, argument: "agent", fallback: Subtask},
	requestApproval:   {permission: approval, argument: "action"},
}

// tools looks up a tool. Calls of unknown tools are denied.
func tools(name string) (tool, bool) {
	if strings.HasPrefix(ToolName(Call{Tool: name}), SkillPrefix) {
		return tool{permission: skills}, true
	}
	t, ok := known[ToolName(Call{Tool: name})]
	return t, ok
}

// Permission returns the permission that a tool needs, or "" if it needs none. ok is false for an unknown
// tool.
func Permission(name string) (needed permission.Name, ok bool) {
	t, ok := tools(name)
	if free(t.permission) != "" {
		return "", ok
	}
	return t.permission, ok
}

// describe returns the subject of a call. A call of a command tool counts as its shell command.
func (g *Gate) describe(call Call) subject {
	if g.options.Server != nil {
		if of := g.options.Server(ToolName(call)); of != "" {
			return subject{permission: permission.MCPCall, other: of}
		}
	}
	if g.options.Command != nil {
		if command, err := g.options.Command(call); command != "" || err != nil {
			return subject{permission: permission.BashExecute, command: command, lingers: lingers(command), err: err}
		}
	}
	return describe(call)
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
	if _, given := arguments[t.argument]; t.fallback != "" && (!given || value == "" && ok) {
		value, ok = t.fallback, true
	}
	if (!ok || value == "") && t.argument != "" {
		return subject{permission: t.permission, err: fmt.Errorf("its input has no %s", t.argument)}
	}
	switch t.permission {
	case permission.BashExecute:
		background, _ := arguments["run_in_background"].(bool)
		return subject{permission: t.permission, command: value, lingers: background || lingers(value)}
	case permission.FileRead, permission.FileWrite:
		return subject{permission: t.permission, path: value}
	case permission.CodeSearch: // the files in the result are checked, too
		path, _ := arguments["path"].(string)
		return subject{permission: t.permission, path: cmp.Or(path, "."), other: value}
	case permission.NetFetch:
		return fetched(value)
	}
	return subject{permission: t.permission, other: value}
}

// fetched returns the subject of a call that fetches a URL, which is its host.
func fetched(address string) subject {
	s := subject{permission: permission.NetFetch, shown: address}
	u, err := url.Parse(address)
	if err != nil {
		s.err = errors.New("its url is not a URL")
		return s
	}
	s.other, s.err = permission.Host(u)
	return s
}

// lingers reports whether a shell command may leave processes behind. It cannot detect all detached
// processes.
func lingers(command string) bool {
	for _, word := range []string{"nohup", "setsid", "disown", "daemon", "systemd-run", "tmux", "screen", "at now", "batch"} {
		if strings.Contains(command, word) {
			return true
		}
	}
	plain := strings.NewReplacer("&&", "", ">&", "", "<&", "", "&>", "").Replace(command)
	return strings.Contains(plain, "&")
}

// named guesses the subject of an unknown tool's call for display.
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
	return clip(cmp.Or(s.shown, s.other, s.path+s.command), maxSubject)
}

// clip truncates a text to one line of at most most runes. It limits the space in the event log that an
// agent can use.
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
	return strings.TrimSpace(ToolName(call) + " " + text)
}
