package agent

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// The tools for files and commands, by which an agent's own are restricted.
const (
	ToolRead  = "fs_read"
	ToolLs    = "fs_ls"
	ToolGlob  = "search_glob"
	ToolGrep  = "search_grep"
	ToolWrite = "fs_write"
	ToolEdit  = "fs_edit"
	ToolBash  = "exec_bash"
)

// The other tools of coven's own loop.
const (
	ToolFetch   = "browser_fetch"
	ToolTodo    = "memory_todo"
	ToolSubtask = "subtask"
)

// toolIDs returns the tools by their names: short ones, and those of Claude Code in lower case. The
// ID is empty for those that every agent has, whatever its definition says.
func toolIDs() map[string]string {
	return map[string]string{
		"read": ToolRead, "notebookread": ToolRead, "ls": ToolLs, "glob": ToolGlob, "grep": ToolGrep,
		"write": ToolWrite, "edit": ToolEdit, "multiedit": ToolEdit, "notebookedit": ToolEdit, "bash": ToolBash,
		"fetch": ToolFetch, "todo": ToolTodo, "subtask": ToolSubtask,
		"read_note": "", "list_notes": "", "semantic_search": "", "spawn_agent": "", "request_approval": "", "send_message": "", "read_messages": "",
	}
}

// ToolNames returns the names of the tools that coven knows, which no other tool may have.
func ToolNames() []string { return slices.Sorted(maps.Keys(toolIDs())) }

// IsEverybodys reports whether every agent has a tool, whatever its definition says.
func IsEverybodys(name string) bool {
	id, known := toolIDs()[name]
	return known && id == ""
}

// ToolIDs returns the tools that a list names: by an ID, a name, or a glob such as fs_*. unknown are
// the entries that name none.
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

// matches reports whether an entry of a list of tools names one, in upper or lower case.
func matches(entry, name string) bool {
	ok, err := path.Match(strings.ToLower(entry), name)
	return err == nil && ok && name != ""
}
