// Package permission decides what an agent may do. It is pure: a decision depends only
// on the request and its arguments.
//
// An agent has permissions with limits: it may read and write files inside the
// worktree, except git's and coven's own files, and run shell commands. Everything
// else is denied.
package permission

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Name is a named kind of action: "file.write".
type Name string

// The permissions that exist.
const (
	FileRead    Name = "file.read"
	FileWrite   Name = "file.write"
	BashExecute Name = "bash.execute"
	// Unknown is the permission for unknown tools. It is never granted.
	Unknown Name = "unknown"
)

// OfBuild returns the permissions of the primary agent "build".
func OfBuild() []Name { return []Name{FileRead, FileWrite, BashExecute} }

// OfReader returns the permissions of an agent that a reviewer or an arbiter uses.
func OfReader() []Name { return []Name{FileRead} }

// Request is an action that an agent requests.
type Request struct {
	Permission Name
	// Path is the file of a file permission: absolute, clean and with all symbolic links
	// resolved.
	Path string
	// Command is the shell command of bash.execute.
	Command string
}

// Decision is the answer to a request.
type Decision struct {
	Allow  bool
	Reason string // one line: the rule that decided
}

// Decide decides about a request of an agent with the permissions held. root is its
// worktree: absolute, clean, with links resolved.
func Decide(root string, held []Name, req Request) Decision {
	if req.Permission != Unknown && !slices.Contains(held, req.Permission) {
		return deny("%s is not granted to this agent", req.Permission)
	}
	switch req.Permission {
	case FileRead, FileWrite:
		return decidePath(root, req)
	case BashExecute:
		return Decision{Allow: true, Reason: "shell commands are granted"}
	case Unknown:
	}
	return deny("no permission is granted for this tool")
}

func decidePath(root string, req Request) Decision {
	inside, ok := within(root, req.Path)
	if !ok {
		return deny("%s is outside the worktree", req.Path)
	}
	for i, element := range strings.Split(inside, string(filepath.Separator)) {
		// On a case-insensitive file system, .GIT is .git.
		switch {
		case strings.EqualFold(element, ".git"):
			return deny("%s belongs to git", inside)
		case i == 0 && strings.EqualFold(element, ".coven"):
			return deny("%s belongs to coven", inside)
		}
	}
	return Decision{Allow: true, Reason: string(req.Permission) + " inside the worktree is granted"}
}

// within returns path relative to root, if it is root or below it.
func within(root, path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}

func deny(format string, args ...any) Decision {
	return Decision{Reason: fmt.Sprintf(format, args...)}
}
