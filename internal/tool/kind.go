package tool

import (
	"path"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/permission"
)

// Kind describes a tool without its implementation: how agents and their definitions name it, and how the
// gate judges its calls.
type Kind struct {
	Name string // by which an agent calls it: spawn_agent, Read
	// ID names it in the tools of definitions: fs_read. Every agent has a tool without one.
	ID string
	// Permission is needed for a call. A tool without one is free, see Free.
	Permission permission.Name
	Subject    string // the argument that the permission is about
	Default    string // the subject of a call without this argument; without it, the argument is required
	// Free is recorded as the permission of a tool whose calls need none.
	Free permission.Name
}

// The permissions on record for calls that need none.
const (
	FreeApproval permission.Name = "approval" // every agent may ask
	FreeNotes    permission.Name = "notes"    // an agent's own notes
	FreeSkill    permission.Name = "skill"    // its definition names it
)

// The tools of coven's own loop, which agent CLIs have in their own form.
var (
	Read  = Kind{Name: "read", ID: "fs_read", Permission: permission.FileRead, Subject: "path"}
	Write = Kind{Name: "write", ID: "fs_write", Permission: permission.FileWrite, Subject: "path"}
	Edit  = Kind{Name: "edit", ID: "fs_edit", Permission: permission.FileWrite, Subject: "path"}
	Ls    = Kind{Name: "ls", ID: "fs_ls", Permission: permission.FileRead, Subject: "path", Default: "."}
	Glob  = Kind{Name: "glob", ID: "search_glob", Permission: permission.CodeSearch, Subject: "pattern"}
	Grep  = Kind{Name: "grep", ID: "search_grep", Permission: permission.CodeSearch, Subject: "pattern"}
	Bash  = Kind{Name: "bash", ID: "exec_bash", Permission: permission.BashExecute, Subject: "command"}
	Fetch = Kind{Name: "fetch", ID: "browser_fetch", Permission: permission.NetFetch, Subject: "url"}
	Todo  = Kind{Name: "todo", ID: "memory_todo", Free: FreeNotes}
	// Subtask starts SubtaskAgent unless a call names another agent.
	Subtask = Kind{Name: "subtask", ID: "subtask", Permission: permission.AgentSpawn, Subject: "agent", Default: SubtaskAgent}
)

// SubtaskAgent is the agent that subtask starts.
const SubtaskAgent = "build"

// The tools of coven that every agent has.
var (
	ReadNote        = Kind{Name: "read_note", Permission: permission.FileRead, Subject: "path"}
	ListNotes       = Kind{Name: "list_notes", Permission: permission.CodeSearch}
	SemanticSearch  = Kind{Name: "semantic_search", Permission: permission.CodeSearch, Subject: "query"}
	SpawnAgent      = Kind{Name: "spawn_agent", Permission: permission.AgentSpawn, Subject: "agent"}
	SendMessage     = Kind{Name: "send_message", Permission: permission.AgentMessage, Subject: "channel"}
	ReadMessages    = Kind{Name: "read_messages", Permission: permission.AgentMessage, Subject: "channel"}
	RequestApproval = Kind{Name: "request_approval", Free: FreeApproval, Subject: "action"}
)

// kinds is the table of all tools that coven knows.
var kinds = []Kind{
	Read, Write, Edit, Ls, Glob, Grep, Bash, Fetch, Todo, Subtask,
	ReadNote, ListNotes, SemanticSearch, SpawnAgent, SendMessage, ReadMessages, RequestApproval,

	// The tools of Claude Code.
	{Name: "Read", ID: Read.ID, Permission: permission.FileRead, Subject: "file_path"},
	{Name: "Write", ID: Write.ID, Permission: permission.FileWrite, Subject: "file_path"},
	{Name: "Edit", ID: Edit.ID, Permission: permission.FileWrite, Subject: "file_path"},
	{Name: "NotebookEdit", ID: Edit.ID, Permission: permission.FileWrite, Subject: "notebook_path"},
	{Name: "Bash", ID: Bash.ID, Permission: permission.BashExecute, Subject: "command"},
	// Earlier tools of Claude Code, which definitions still name. Without a permission, their calls are refused.
	{Name: "NotebookRead", ID: Read.ID},
	{Name: "MultiEdit", ID: Edit.ID},
}

// SkillPrefix begins the names of the tools with which agents read their skills.
const SkillPrefix = "skill_"

// Skill returns the tool with which an agent reads a skill.
func Skill(name string) Kind { return Kind{Name: SkillPrefix + name, Free: FreeSkill} }

// KindOf returns the tool with a name, as an agent calls it. It returns false for a tool whose calls coven does not
// know how to judge.
func KindOf(name string) (Kind, bool) {
	if skill, ok := strings.CutPrefix(name, SkillPrefix); ok {
		return Skill(skill), true
	}
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name && (k.Permission != "" || k.Free != "") })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// Subjects returns the arguments that permissions are about.
func Subjects() (all []string) {
	for _, k := range kinds {
		if k.Subject != "" {
			all = append(all, k.Subject)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Names returns the names and IDs of the tools that coven knows, in lower case. No other tool may have one of them.
func Names() (all []string) {
	for _, k := range kinds {
		all = append(all, strings.ToLower(k.Name))
		if k.ID != "" {
			all = append(all, k.ID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ForEveryone reports whether every agent has a tool, regardless of its definition.
func ForEveryone(name string) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name && k.ID == "" })
}

// IDs returns the IDs of the tools that a list names: each entry is an ID, a name, or a glob such as fs_*, in upper or
// lower case. unknown are the entries that match no tool.
func IDs(list []string) (ids, unknown []string) {
	for _, entry := range list {
		known := false
		for _, k := range kinds {
			if matches(entry, k.Name) || matches(entry, k.ID) {
				known = true
				ids = append(ids, k.ID)
			}
		}
		if !known {
			unknown = append(unknown, entry)
		}
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" }), unknown
}

func matches(entry, name string) bool {
	ok, err := path.Match(strings.ToLower(entry), strings.ToLower(name))
	return err == nil && ok && name != ""
}
