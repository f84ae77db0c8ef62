package fakeclaude

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// call is one tool call by the model.
type call struct {
	id    string
	name  string
	input object // as written by the model, with defaults
}

// outcome is the result of a call.
type outcome struct {
	call    call
	content any   // a string or content blocks
	isError *bool // the real CLI omits it for some successful calls
	denied  bool
	abort   bool  // ends the run with a result
	fatal   error // ends the run without a result
}

func newCall(block object) call {
	id, _ := block["id"].(string)
	name, _ := block["name"].(string)
	input, _ := block["input"].(object)
	return call{id: id, name: name, input: input}
}

// withDefaults adds the real CLI's defaults to an input, also in the events.
func withDefaults(name any, input object) {
	if _, given := input["replace_all"]; name == "Edit" && !given {
		input["replace_all"] = false
	}
}

// parameters returns the known parameters of a tool. Required parameters begin
// with "!".
func parameters(tool string) []string {
	return map[string][]string{
		"Bash":         {"!command", "description", "timeout"},
		"Read":         {"!file_path", "offset", "limit"},
		"Write":        {"!file_path", "!content"},
		"Edit":         {"!file_path", "!old_string", "!new_string", "replace_all"},
		"NotebookEdit": {"!notebook_path", "!new_source", "cell_id", "cell_type", "edit_mode"},
		"Glob":         {"!pattern", "path"},
		"Grep":         {"!pattern", "path", "output_mode"},
	}[tool]
}

// invalid returns the error in the input, in the real CLI's words, or "".
func (c call) invalid() string {
	var issues, known []string
	for _, parameter := range parameters(c.name) {
		name, required := strings.CutPrefix(parameter, "!")
		known = append(known, name)
		value, given := c.input[name]
		switch {
		case !given && required:
			issues = append(issues, fmt.Sprintf("The required parameter `%s` is missing", name))
		case given && !fits(name, value):
			issues = append(issues, fmt.Sprintf("The parameter `%s` type is wrong", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.input)) {
		if !slices.Contains(known, name) {
			issues = append(issues, fmt.Sprintf("An unexpected parameter `%s` was provided", name))
		}
	}
	if len(issues) == 0 {
		return ""
	}
	return fmt.Sprintf("InputValidationError: %s failed due to the following issues:\n%s", c.name, strings.Join(issues, "\n"))
}

func fits(name string, value any) bool {
	var ok bool
	switch name {
	case "timeout", "offset", "limit":
		_, ok = value.(float64)
	case "replace_all":
		_, ok = value.(bool)
	default:
		_, ok = value.(string)
	}
	return ok
}

// askedInput returns the input for the permission tool, with absolute paths.
func (c call) askedInput(cwd, home string) object {
	input := maps.Clone(c.input)
	for _, name := range []string{"file_path", "notebook_path"} {
		if path, isString := input[name].(string); isString {
			input[name] = absolute(path, cwd, home)
		}
	}
	return input
}

func absolute(path, cwd, home string) string {
	if rest, inHome := strings.CutPrefix(path, "~/"); inHome {
		return filepath.Join(home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

// readOnly reports whether the call may run concurrently with others. For a command it is
// a guess, as in the real CLI: every command in it must be known
// to only read.
func (c call) readOnly() bool {
	switch c.name {
	case "Read", "Glob", "Grep":
		return true
	case "Bash":
		command, _ := c.input["command"].(string)
		return harmless(command)
	default:
		return false
	}
}

// readers returns commands that only read.
func readers() []string {
	return []string{"ls", "cat", "echo", "pwd", "true", "false", "sleep", "head", "tail", "wc", "grep", "date"}
}

func harmless(command string) bool {
	if strings.ContainsAny(command, "><`$\n") {
		return false
	}
	for _, part := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(";&|", r) }) {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		isGit := len(words) > 1 && words[0] == "git" && slices.Contains([]string{"status", "diff", "log", "show"}, words[1])
		if !isGit && !slices.Contains(readers(), words[0]) {
			return false
		}
	}
	return true
}

func succeeded(c call, content any) outcome { return outcome{call: c, content: content} }

func failed(c call, text string) outcome {
	yes := true
	return outcome{call: c, content: text, isError: &yes}
}

// refused returns the outcome of a call that never ran. The mark distinguishes it from
// a failed call.
func refused(c call, text string) outcome {
	return failed(c, "<tool_use_error>"+text+"</tool_use_error>")
}

// block returns the outcome in the form for the model.
func (o outcome) block() object {
	block := object{"type": "tool_result", "tool_use_id": o.call.id, "content": o.content}
	if o.isError != nil {
		block["is_error"] = *o.isError
	}
	return block
}
