package acp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/internal/text/strictjson"
	"github.com/coven-run/coven/plugins/provider"
)

// step contains the data of a request that Answer needs.
type step struct {
	Did    string          `json:"did"`              // the method of the agent, or of coven's request that it answered
	ID     json.RawMessage `json:"id,omitempty"`     // ID of the agent's request
	Once   string          `json:"once,omitempty"`   // the option that permits a call once
	Reject string          `json:"reject,omitempty"` // the option that rejects a call

	Version int     `json:"version,omitempty"` // version of the protocol
	Loads   bool    `json:"loads,omitempty"`   // the agent can load sessions
	Session string  `json:"session,omitempty"`
	Option  string  `json:"option,omitempty"` // the option for choosing the model
	Models  []model `json:"models,omitempty"`
	Mode    bool    `json:"mode,omitempty"`  // the mode must be chosen
	Again   bool    `json:"again,omitempty"` // the agent ended its turn at a call that failed
	Why     string  `json:"why,omitempty"`   // why coven refused the call

	Invalid string `json:"invalid,omitempty"` // why the parameters cannot be used
}

// asked returns the event for the next step after a response.
func asked(s step) provider.Asked {
	data, _ := json.Marshal(s) // strings can always be encoded
	return provider.Asked{ID: "after " + s.Did, Data: data}
}

// request returns the event for a request of the agent.
func (m message) request() provider.Asked {
	s := step{Did: m.Method, ID: m.ID}
	out := provider.Asked{ID: string(m.ID)}
	var err error
	switch m.Method {
	case acp.ClientMethodSessionRequestPermission:
		var in acp.RequestPermissionRequest
		if _, err = strictjson.Object(m.Params); err != nil {
			break // the agent could read other parameters than those which the gate would see
		}
		if err = json.Unmarshal(m.Params, &in); err == nil {
			s.Once, s.Reject = optionsOf(in.Options)
			s.Session = string(in.SessionId)
			out.Calls = callsOf(in.ToolCall)
		}
	case acp.ClientMethodFsReadTextFile:
		var in acp.ReadTextFileRequest
		if err = json.Unmarshal(m.Params, &in); err == nil {
			out.Action = provider.ReadFile{Path: in.Path, Line: value(in.Line), Limit: value(in.Limit)}
		}
	case acp.ClientMethodFsWriteTextFile:
		var in acp.WriteTextFileRequest
		if err = json.Unmarshal(m.Params, &in); err == nil {
			out.Action = provider.WriteFile{Path: in.Path, Content: in.Content}
		}
	case acp.ClientMethodTerminalCreate:
		var in acp.CreateTerminalRequest
		if err = json.Unmarshal(m.Params, &in); err == nil {
			out.Action = provider.RunCommand{Command: commandOf(in), Dir: value(in.Cwd), MaxOutput: value(in.OutputByteLimit)}
		}
	default:
		var in struct{ TerminalID string }
		if do := terminalMethods()[m.Method]; do != "" {
			err = json.Unmarshal(m.Params, &in)
			out.Action = provider.UseTerminal{ID: in.TerminalID, Do: do}
		}
	}
	if err != nil {
		out.Action, s.Invalid = nil, err.Error()
	}
	out.Data, _ = json.Marshal(s) // strings can always be encoded
	return out
}

// terminalMethods maps the protocol's methods for terminals to coven's operations.
func terminalMethods() map[string]string {
	return map[string]string{
		acp.ClientMethodTerminalOutput:      provider.TerminalOutput,
		acp.ClientMethodTerminalWaitForExit: provider.TerminalAwait,
		acp.ClientMethodTerminalKill:        provider.TerminalKill,
		acp.ClientMethodTerminalRelease:     provider.TerminalRelease,
	}
}

// optionsOf returns the options that permit and reject a single call, or "". It ignores an ID that several
// options have.
func optionsOf(options []acp.PermissionOption) (once, reject string) {
	count := map[acp.PermissionOptionId]int{}
	for _, o := range options {
		count[o.OptionId]++
	}
	for _, o := range options {
		switch {
		case count[o.OptionId] > 1:
		case o.Kind == acp.PermissionOptionKindAllowOnce && once == "":
			once = string(o.OptionId)
		case o.Kind == acp.PermissionOptionKindRejectOnce:
			reject = string(o.OptionId)
		case o.Kind == acp.PermissionOptionKindRejectAlways && reject == "":
			reject = string(o.OptionId)
		}
	}
	return once, reject
}

// commandOf returns the shell command for a terminal. Agents send a complete command, or a program and its
// arguments.
func commandOf(in acp.CreateTerminalRequest) string {
	command := in.Command
	if len(in.Args) > 0 {
		command = words(append([]string{in.Command}, in.Args...)...)
	}
	for _, v := range slices.Backward(in.Env) {
		command = "export " + words(v.Name+"="+v.Value) + " && " + command
	}
	return command
}

// words joins words into a shell command, with quoting.
func words(list ...string) string {
	for i := range list {
		list[i] = shellword.Word(list[i])
	}
	return strings.Join(list, " ")
}

// callsOf returns the calls for a tool call that the gate decides about, at least one. The first has the ID
// of the tool call. If the parameters do not show the object of a call, the call has no argument, and the
// gate refuses it.
func callsOf(c acp.ToolCallUpdate) []provider.ToolCall {
	raw, _ := c.RawInput.(map[string]any)
	text := func(names ...string) string {
		for _, name := range names {
			if s, ok := raw[name].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	id := callID(c.ToolCallId)
	if own, is := ownCall(id, c, raw); is {
		return []provider.ToolCall{own}
	}
	kind := value(c.Kind)
	if kind == "" || kind == acp.ToolKindOther {
		kind = guess(raw)
	}
	switch kind {
	case acp.ToolKindExecute:
		return []provider.ToolCall{bash(id, raw)}
	case acp.ToolKindFetch:
		return withCommand(id, raw, []provider.ToolCall{call(id, provider.CallFetch, "url", text("url"))})
	case acp.ToolKindSearch:
		return withCommand(id, raw, searches(id, text("pattern", "query"), pathsOf(c, raw)))
	case acp.ToolKindRead:
		return withCommand(id, raw, each(id, provider.CallRead, pathsOf(c, raw)))
	case acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		return withCommand(id, raw, changes(id, c, pathsOf(c, raw)))
	}
	return []provider.ToolCall{call(id, string(kind))}
}

// callID returns the ID of a tool call. It abbreviates a long one, because coven stores the IDs.
func callID(id acp.ToolCallId) string {
	if len(id) <= maxID {
		return string(id)
	}
	sum := sha256.Sum256([]byte(id))
	return string(id[:maxID/2]) + hex.EncodeToString(sum[:])
}

// bash returns a call of the shell, including the directory in which the command runs.
func bash(id string, raw map[string]any) provider.ToolCall {
	dir := ""
	for _, name := range []string{"cwd", "workdir", "directory", "dir_path", "working_directory"} {
		if text, ok := raw[name].(string); ok && dir == "" {
			dir = text
		}
	}
	text := command(raw["command"])
	if text == "" {
		dir = ""
	}
	return call(id, provider.CallBash, "command", text, "dir", dir)
}

// withCommand adds a call of the shell to other calls if the parameters contain a command, because the tool
// may run it, regardless of its kind. Some tools for editing files have a parameter "command" for the
// operation.
func withCommand(id string, raw map[string]any, calls []provider.ToolCall) []provider.ToolCall {
	switch raw["command"] {
	case nil, "", "view", "create", "str_replace", "insert", "undo_edit":
		return calls
	}
	return append(calls, bash(id+strings.Repeat("+", len(calls)), raw))
}

// searches returns search calls, one for each path.
func searches(id, pattern string, paths []string) (calls []provider.ToolCall) {
	if len(paths) == 0 {
		return []provider.ToolCall{call(id, provider.CallGrep, "pattern", pattern)}
	}
	for i, path := range paths {
		calls = append(calls, call(id+strings.Repeat("+", i), provider.CallGrep, "pattern", pattern, "path", path))
	}
	return calls
}

// ownToolRE matches the names that agents give to a tool of coven's MCP server.
var ownToolRE = lazyregexp.New(`^(?:mcp__coven__(\w+)|(\w+) \(coven MCP Server\)(?:: .*)?)$`)

// ownCall returns the call of a tool of coven's MCP server that the title names, or the name in the metadata of Qwen Code.
// Agents report some of them as reads or searches. A call with the object of another one is not trusted.
func ownCall(id string, c acp.ToolCallUpdate, raw map[string]any) (provider.ToolCall, bool) {
	named, _ := c.Meta["toolName"].(string)
	name := cmp.Or(ownTool(value(c.Title)), ownTool(named))
	if name == "" || raw["command"] != nil || raw["url"] != nil {
		return provider.ToolCall{}, false
	}
	switch value(c.Kind) {
	case "", acp.ToolKindOther:
	case acp.ToolKindRead, acp.ToolKindSearch:
		if len(pathsOf(c, raw)) > 0 {
			return provider.ToolCall{}, false
		}
	default:
		return provider.ToolCall{}, false
	}
	if raw == nil {
		raw = map[string]any{}
	}
	input, _ := json.Marshal(raw) // it was JSON
	return provider.ToolCall{ID: id, Name: name, Input: input}, true
}

// ownTool returns coven's tool that a title names, or "". A false title is harmless: the gate decides about
// the named tool, and coven's server runs no other.
func ownTool(title string) string {
	found := ownToolRE.FindStringSubmatch(title)
	if found == nil {
		return ""
	}
	return provider.CallOwn + found[1] + found[2]
}

// guess returns the kind of a call for which the agent reports none. A file counts as changed.
func guess(raw map[string]any) acp.ToolKind {
	for _, sign := range []struct {
		name string
		kind acp.ToolKind
	}{{"command", acp.ToolKindExecute}, {"url", acp.ToolKindFetch}, {"file_path", acp.ToolKindEdit}, {"path", acp.ToolKindEdit}} {
		if _, ok := raw[sign.name]; ok {
			return sign.kind
		}
	}
	return acp.ToolKindOther
}

// command returns a shell command. Some agents send a list of words.
func command(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		var list []string
		for _, word := range value {
			text, ok := word.(string)
			if !ok {
				return ""
			}
			list = append(list, text)
		}
		return words(list...)
	}
	return ""
}

// pathsOf returns the files of a call.
func pathsOf(c acp.ToolCallUpdate, raw map[string]any) (paths []string) {
	add := func(path string) {
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, name := range []string{"file_path", "absolute_path", "filePath", "filepath", "path", "dir_path", "directory", "notebook_path", "source", "destination"} {
		path, _ := raw[name].(string)
		add(path)
	}
	for _, l := range c.Locations {
		add(l.Path)
	}
	for _, part := range c.Content {
		if part.Diff != nil {
			add(part.Diff.Path)
		}
	}
	return paths
}

// changes returns calls that change files. If the agent reports the change of a file, the call contains it.
func changes(id string, c acp.ToolCallUpdate, paths []string) []provider.ToolCall {
	calls := each(id, provider.CallWrite, paths)
	for _, part := range c.Content {
		if part.Diff == nil || part.Diff.Path == "" {
			continue
		}
		i := slices.Index(paths, part.Diff.Path)
		old := value(part.Diff.OldText)
		if old == "" {
			calls[i] = call(calls[i].ID, provider.CallWrite, "path", part.Diff.Path, "content", part.Diff.NewText)
			continue
		}
		calls[i] = call(calls[i].ID, provider.CallEdit, "path", part.Diff.Path, "oldText", old, "newText", part.Diff.NewText)
	}
	return calls
}

// each returns a call for each path, or one without a path.
func each(id, tool string, paths []string) (calls []provider.ToolCall) {
	for i, path := range paths {
		calls = append(calls, call(id+strings.Repeat("+", i), tool, "path", path))
	}
	if len(calls) == 0 {
		calls = append(calls, call(id, tool))
	}
	return calls
}

// hasGateArgument returns the tools whose calls have an argument for the gate.
func hasGateArgument() map[string]bool {
	return map[string]bool{
		provider.CallRead: true, provider.CallWrite: true, provider.CallEdit: true, provider.CallGrep: true, provider.CallBash: true, provider.CallFetch: true,
	}
}

// call returns a call with arguments, which are pairs of a name and a value. It omits empty values.
func call(id, tool string, arguments ...string) provider.ToolCall {
	input := map[string]string{}
	for i := 0; i < len(arguments); i += 2 {
		if arguments[i+1] != "" {
			input[arguments[i]] = arguments[i+1]
		}
	}
	text, _ := json.Marshal(input) // strings can always be encoded
	return provider.ToolCall{ID: id, Name: tool, Input: text}
}
