package fakeapi

import (
	"fmt"
	"path"
	"slices"

	"github.com/coven-run/coven/internal/text/shellword"
)

// customInput is the key in a call's input for plain text: see callItem.
const customInput = "\x00text"

// spoken translates the calls of the turn to the offered tools. A script
// uses the tool names of Claude Code. Calls of offered tools, and calls without an
// equivalent, do not change.
func (t Turn) spoken(offered []string) Turn {
	tools := make([]Tool, len(t.Tools))
	for i, tool := range t.Tools {
		tools[i] = tool.spoken(offered)
	}
	t.Tools = tools
	return t
}

func (t Tool) spoken(offered []string) Tool {
	offers := func(name string) bool { return slices.Contains(offered, name) }
	if offers(t.Name) {
		return t
	}
	switch { // qwen-code
	case t.Name == "Bash" && offers("run_shell_command"):
		return Tool{"run_shell_command", map[string]any{"command": t.Input["command"], "description": "scripted", "is_background": false}}
	case t.Name == "Read" && offers("read_file"):
		return Tool{"read_file", map[string]any{"file_path": t.Input["file_path"]}}
	case t.Name == "Edit" && offers("edit"):
		return Tool{"edit", t.Input}
	case t.Name == "Write" && offers("write_file"):
		return Tool{"write_file", t.Input}
	case t.Name == "Write" && offers("edit"): // creates a new file
		return Tool{"edit", map[string]any{"file_path": t.Input["file_path"], "old_string": "", "new_string": t.Input["content"]}}
	}
	command := t.command()
	switch { // codex
	case command != "" && offers("exec_command"):
		return Tool{"exec_command", map[string]any{"cmd": command}}
	case command != "" && offers("exec"): // a tool of some models that runs a script, which calls the other tools
		source := fmt.Sprintf("text(await tools.exec_command({cmd: %s}));", encode(command))
		return Tool{"exec", map[string]any{customInput: source}}
	}
	return t
}

// command returns a shell command that is equivalent to the call, or "".
func (t Tool) command() string {
	text := func(key string) string { s, _ := t.Input[key].(string); return s }
	switch file := text("file_path"); t.Name {
	case "Bash":
		return text("command")
	case "Read":
		return "cat " + shellword.Quote(file)
	case "Write":
		return fmt.Sprintf("mkdir -p %s && printf %%s %s > %s", shellword.Quote(path.Dir(file)), shellword.Quote(text("content")), shellword.Quote(file))
	}
	return ""
}
