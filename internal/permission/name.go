package permission

import (
	"slices"
	"strings"
)

// Name is a kind of action, such as "file.write".
type Name string

// The permissions.
const (
	FileRead     Name = "file.read"
	FileWrite    Name = "file.write"
	CodeSearch   Name = "code.search"
	DataRead     Name = "data.read"
	DataWrite    Name = "data.write"
	NetFetch     Name = "net.fetch"
	BashExecute  Name = "bash.execute"
	MCPCall      Name = "mcp.call"
	AgentSpawn   Name = "agent.spawn"
	AgentMessage Name = "agent.message"
	// Unknown is the permission for unknown tools. It is never granted.
	Unknown Name = "unknown"
)

// Names returns all permissions that can be granted.
func Names() []Name {
	return []Name{FileRead, FileWrite, CodeSearch, DataRead, DataWrite, NetFetch, BashExecute, MCPCall, AgentSpawn, AgentMessage}
}

// A Bundle is a word that stands for several permissions.
type Bundle struct {
	Word  string
	Names []Name
}

// Bundles returns the bundles.
func Bundles() []Bundle {
	return []Bundle{
		{"FilesystemRead", []Name{FileRead}},
		{"FilesystemWrite", []Name{FileWrite}},
		{"SemanticSearch", []Name{CodeSearch}},
		{"DatabaseRead", []Name{DataRead}},
		{"DatabaseWrite", []Name{DataWrite}},
		{"NetworkAccess", []Name{NetFetch}},
	}
}

// Words returns all words for permissions, bundles first.
func Words() []string {
	var words []string
	for _, b := range Bundles() {
		words = append(words, b.Word)
	}
	for _, name := range Names() {
		words = append(words, string(name))
	}
	return words
}

// Expand returns the permissions for a word, which is a bundle or a single permission.
func Expand(word string) ([]Name, bool) {
	for _, b := range Bundles() {
		if b.Word == word {
			return b.Names, true
		}
	}
	name := Name(word)
	return []Name{name}, slices.Contains(Names(), name)
}

// Word returns the user-facing word for a permission: the bundle with only this permission, or its name.
func (n Name) Word() string {
	for _, b := range Bundles() {
		if slices.Equal(b.Names, []Name{n}) {
			return b.Word
		}
	}
	return string(n)
}

// Join returns the words for permissions in the order of Names, separated by commas.
func Join(names []Name) string {
	var words []string
	for _, name := range Names() {
		if slices.Contains(names, name) {
			words = append(words, name.Word())
		}
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, ", ")
}

// Baseline returns the permissions that every agent has, independent of its definition and of the request
// that starts it. A rule can still deny a file.
func Baseline() []Name { return []Name{FileRead, CodeSearch} }
