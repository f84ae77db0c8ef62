package gate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/strictjson"
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
	s := g.subject(call)
	if _, err := strictjson.Object(call.Input); err != nil {
		s.err = fmt.Errorf("wrong arguments: %w", err)
	}
	return s
}

func (g *Gate) subject(call Call) subject {
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
	arguments, err := known(call.Input)
	if err != nil {
		return subject{permission: needed, err: fmt.Errorf("wrong arguments: %w", err)}
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

// read lists the arguments of known tools that coven reads, apart from their subjects.
var read = []string{"content", "old_string", "new_string", "replace_all", "oldText", "newText", "replaceAll", "path", "run_in_background"}

// known decodes the arguments of a known tool. It returns an error for a name that differs only by case from one that
// coven reads: a tool that ignores case would use its value, and coven would not see it.
func known(input json.RawMessage) (map[string]any, error) {
	arguments, err := strictjson.Object(input)
	if err != nil {
		return nil, err
	}
	names := append(tool.Subjects(), read...)
	for _, given := range slices.Sorted(maps.Keys(arguments)) {
		for _, name := range names {
			if given != name && strings.EqualFold(given, name) {
				return nil, fmt.Errorf("unknown argument %.40q: the name is %q", given, name)
			}
		}
	}
	return arguments, nil
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

// exact returns a hash of the permission, the whole subject, and the file at place.
func (s subject) exact(place string) string {
	sum := sha256.New()
	for _, part := range []string{string(s.permission), cmp.Or(place, s.path), s.shown, s.other, s.command} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// guessSubject guesses the subject of an unknown tool's call for display.
func guessSubject(call Call) subject {
	arguments, err := strictjson.Object(call.Input)
	if err != nil {
		return subject{}
	}
	path, _ := arguments["file_path"].(string)
	command, _ := arguments["command"].(string)
	return subject{path: path, command: command}
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
