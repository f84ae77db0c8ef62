// Package permission decides what an agent may do. It is pure: a request and
// the facts that belong to it go in, a decision with its reason comes out.
//
// An agent holds some permissions, and each has its own bound: files inside the
// worktree may be read and written, except git's and coven's own; shell commands
// may run. Everything else is denied.
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
	// Unknown is the permission of a tool that coven does not know. Nobody
	// holds it.
	Unknown Name = "unknown"
)

// OfBuild are the permissions of the primary agent "build".
func OfBuild() []Name { return []Name{FileRead, FileWrite, BashExecute} }

// OfReader are the permissions of an agent that a reviewer or an arbiter asks.
func OfReader() []Name { return []Name{FileRead} }

// Request is one action that an agent asks for.
type Request struct {
	Permission Name
	// Path is what a file permission is asked for, absolute, clean and with
	// all symbolic links resolved.
	Path string
	// Command is what bash.execute is asked for.
	Command string
}

// Decision is the answer to a request.
type Decision struct {
	Allow  bool
	Reason string // one line: the rule that decided
}

// Decide answers a request of an agent that holds some permissions and whose
// worktree is root: absolute, clean, links resolved.
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
		// A file system may fold case, and then .GIT is .git.
		switch {
		case strings.EqualFold(element, ".git"):
			return deny("%s belongs to git", inside)
		case i == 0 && strings.EqualFold(element, ".coven"):
			return deny("%s belongs to coven", inside)
		}
	}
	return Decision{Allow: true, Reason: string(req.Permission) + " inside the worktree is granted"}
}

// within returns path relative to root, when it is root or below it.
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
