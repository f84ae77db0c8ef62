package agent

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// IDs of tools for files and commands. A definition can restrict the agent's own tools by them.
const (
	ToolRead  = "fs_read"
	ToolLs    = "fs_ls"
	ToolGlob  = "search_glob"
	ToolGrep  = "search_grep"
	ToolWrite = "fs_write"
	ToolEdit  = "fs_edit"
	ToolBash  = "exec_bash"
)

// IDs of the other tools of coven's own loop.
const (
	ToolFetch   = "browser_fetch"
	ToolTodo    = "memory_todo"
	ToolSubtask = "subtask"
)

// toolIDs maps names of tools, including those of Claude Code in lower case, to their IDs. The
// ID is empty for a tool that every agent has.
func toolIDs() map[string]string {
	return map[string]string{
		"read": ToolRead, "notebookread": ToolRead, "ls": ToolLs, "glob": ToolGlob, "grep": ToolGrep,
		"write": ToolWrite, "edit": ToolEdit, "multiedit": ToolEdit, "notebookedit": ToolEdit, "bash": ToolBash,
		"fetch": ToolFetch, "todo": ToolTodo, "subtask": ToolSubtask,
		"read_note": "", "list_notes": "", "semantic_search": "", "spawn_agent": "", "request_approval": "", "send_message": "", "read_messages": "",
	}
}

// ToolNames returns the reserved names of coven's tools, sorted.
func ToolNames() []string { return slices.Sorted(maps.Keys(toolIDs())) }

// IsEverybodys reports whether every agent has the tool, independent of its definition.
func IsEverybodys(name string) bool {
	id, known := toolIDs()[name]
	return known && id == ""
}

// ToolIDs resolves a list of IDs, names, and globs such as fs_* to tools. unknown contains the
// entries that match none.
func ToolIDs(list []string) (ids, unknown []string) {
	for _, entry := range list {
		known := false
		for name, id := range toolIDs() {
			if matches(entry, name) || matches(entry, id) {
				known = true
				ids = append(ids, id)
			}
		}
		if !known {
			unknown = append(unknown, entry)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" }), unknown
}

// matches reports whether an entry of a tool list matches a name, ignoring case.
func matches(entry, name string) bool {
	ok, err := path.Match(strings.ToLower(entry), name)
	return err == nil && ok && name != ""
}
