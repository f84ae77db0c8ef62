package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
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

// exempt returns why an action needs no permission, or "" if it does.
func exempt(name permission.Name) string {
	switch name {
	case tool.FreeApproval:
		return "everybody may ask"
	case tool.FreeNotes:
		return "every agent may keep notes of its own"
	case tool.FreeSkill:
		return "every agent may read its skills"
	}
	return ""
}

// serverPrefix is the prefix of coven's MCP tools in agent CLIs.
const serverPrefix = "mcp__coven__"

// ToolName returns the tool name of a call without the prefix that an agent CLI adds.
func ToolName(call Call) string { return strings.TrimPrefix(call.Tool, serverPrefix) }

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
	t, ok := tool.KindOf(ToolName(call))
	if !ok {
		return subject{permission: permission.Unknown}
	}
	needed := cmp.Or(t.Permission, t.Free)
	var arguments map[string]any
	if err := json.Unmarshal(call.Input, &arguments); err != nil {
		return subject{permission: needed, err: fmt.Errorf("its input is not a JSON object")}
	}
	value, ok := arguments[t.Subject].(string)
	if _, given := arguments[t.Subject]; t.Default != "" && (!given || value == "" && ok) {
		value, ok = t.Default, true
	}
	if (!ok || value == "") && t.Subject != "" {
		return subject{permission: needed, err: fmt.Errorf("its input has no %s", t.Subject)}
	}
	switch needed {
	case permission.BashExecute:
		background, _ := arguments["run_in_background"].(bool)
		return subject{permission: needed, command: value, lingers: background || lingers(value)}
	case permission.FileRead, permission.FileWrite:
		return subject{permission: needed, path: value}
	case permission.CodeSearch: // each file that is found is checked as well
		path, _ := arguments["path"].(string)
		return subject{permission: needed, path: cmp.Or(path, "."), other: value}
	case permission.NetFetch:
		return fetched(value)
	}
	return subject{permission: needed, other: value}
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

// guessSubject guesses the subject of an unknown tool's call for display.
func guessSubject(call Call) subject {
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
		s = guessSubject(call)
	}
	text := s.text()
	if s.path != "" {
		text = strings.TrimPrefix(text, root+"/")
	}
	return strings.TrimSpace(ToolName(call) + " " + text)
}
