// Package protected reads the shared parts of a repository that no program of a task may change: refs,
// configuration and hooks. It finds and describes changes.
//
// Rules:
//   - It only reads, and it runs no program. If an agent replaces a file with something
//     else, such as a pipe, a link or a huge file, it is described, but not followed or read.
//   - A file is read again unless its inode, size and times are the same. The kernel sets the
//     change time, so a program without privileges cannot hide a change.
//   - Severity is a pure function of a Change and of whether a fence confined the programs.
package protected

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Kind is the kind of a watched item.
type Kind string

// The kinds.
const (
	Ref      Kind = "ref"      // a branch, a tag, HEAD of the main checkout
	Config   Kind = "config"   // a file that configures git in the repository
	Hook     Kind = "hook"     // a file of the directory of hooks
	Checkout Kind = "checkout" // a file of the main checkout
	Index    Kind = "index"    // an entry of the main checkout's index
	Sibling  Kind = "worktree" // a file of the worktree of another task
)

// A Place is the directory to which the name of a Change is relative.
type Place string

// The places. The name of a file anywhere else is an absolute path.
const (
	InGitDir   Place = "git"
	InCheckout Place = "checkout"
	Elsewhere  Place = ""
)

// A Value is the state of a watched item. The zero Value means that it does not exist.
type Value struct {
	// Text identifies the state. For a ref, it is an object ID, or "ref: NAME" for a symbolic ref. For a
	// file, it is "sha256:HEX" for its content, "link: TARGET", an object ID (Checkout, Index, Sibling), or
	// a description of an unreadable file.
	Text string `json:"text,omitempty"`
	// Mode is the mode of a file as shown by git or ls, such as 100755 or -rwxr-xr-x.
	Mode string `json:"mode,omitempty"`
	// Content is the content of a file, unless it is too large or kept elsewhere.
	Content []byte `json:"content,omitempty"`
}

// Exists reports whether the item exists.
func (v Value) Exists() bool { return v.Text != "" }

// Equal reports whether two values describe the same state.
func (v Value) Equal(other Value) bool { return v.Text == other.Text && v.Mode == other.Mode }

// Stored reports whether the value can be restored: whether it includes the content, or needs none.
func (v Value) Stored() bool {
	if strings.HasPrefix(v.Text, sumPrefix) {
		return v.Content != nil || v.Text == sum(nil)
	}
	return !strings.HasPrefix(v.Text, oddPrefix)
}

// A Change is the change of a watched item.
type Change struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`         // of a ref: refs/heads/main; of a file: relative to In
	In     Place  `json:"in,omitempty"` // of a Config or Hook
	Task   string `json:"task,omitempty"`
	Before Value  `json:"before,omitzero"`
	After  Value  `json:"after,omitzero"`
	// Forward means that a ref moved to a commit that contains the previous one.
	Forward bool `json:"forward,omitempty"`
}

// Reversed returns the change that undoes c.
func (c Change) Reversed() Change {
	c.Before, c.After, c.Forward = c.After, c.Before, false
	return c
}

// String describes the change in a few words, such as "branch main was moved back".
func (c Change) String() string { return c.thing() + " was " + c.verb() }

// thing names the changed item.
func (c Change) thing() string {
	switch c.Kind {
	case Ref:
		return refThing(c.Name)
	case Config:
		return "git configuration " + c.Name
	case Hook:
		return "hook " + c.Name
	case Index:
		return "index entry " + c.Name
	case Sibling:
		return "file " + c.Name + " of task " + c.Task
	}
	return "file " + c.Name
}

func refThing(name string) string {
	for _, kind := range []struct{ prefix, word string }{
		{headsPrefix, "branch "}, {tagsPrefix, "tag "}, {"refs/remotes/", "remote-tracking branch "},
	} {
		if short, found := strings.CutPrefix(name, kind.prefix); found {
			return kind.word + short
		}
	}
	return name
}

func (c Change) verb() string {
	switch {
	case !c.Before.Exists():
		return "added"
	case !c.After.Exists():
		return "deleted"
	case c.Kind != Ref:
		return "changed"
	case c.Name == head:
		return fmt.Sprintf("changed from %s to %s", short(c.Before.Text), short(c.After.Text))
	case isSymbolic(c.After) != isSymbolic(c.Before):
		return fmt.Sprintf("changed from %s to %s", short(c.Before.Text), short(c.After.Text))
	case c.Forward && !strings.HasPrefix(c.Name, tagsPrefix):
		return "moved forward"
	}
	return fmt.Sprintf("moved from %s to %s", short(c.Before.Text), short(c.After.Text))
}

// short shortens the text of a ref's value for display.
func short(text string) string {
	if target, symbolic := strings.CutPrefix(text, symbolicPrefix); symbolic {
		return strings.TrimPrefix(target, headsPrefix)
	}
	if odd, found := strings.CutPrefix(text, oddPrefix); found {
		return odd
	}
	return fmt.Sprintf("%.10s", text)
}

func isSymbolic(v Value) bool { return strings.HasPrefix(v.Text, symbolicPrefix) }

// Compare returns the changes between two states, ordered by Sort.
func Compare(before, after State) []Change {
	var changes []Change
	for name, old := range before.Refs {
		if now := after.Refs[name]; now != old {
			changes = append(changes, Change{Kind: Ref, Name: name, Before: Value{Text: old}, After: Value{Text: now}})
		}
	}
	for name, now := range after.Refs {
		if before.Refs[name] == "" {
			changes = append(changes, Change{Kind: Ref, Name: name, After: Value{Text: now}})
		}
	}
	for path, old := range before.Files {
		if now := after.Files[path]; !now.Equal(old.Value) {
			changes = append(changes, Change{Kind: old.Kind, Name: old.Name, In: old.In, Before: old.Value, After: now.Value})
		}
	}
	for path, now := range after.Files {
		if !before.Files[path].Exists() {
			changes = append(changes, Change{Kind: now.Kind, Name: now.Name, In: now.In, After: now.Value})
		}
	}
	Sort(changes)
	return changes
}

// Sort sorts changes by kind, starting with hooks and configuration, then by task and name.
func Sort(changes []Change) {
	order := []Kind{Hook, Config, Ref, Checkout, Index, Sibling}
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)),
			cmp.Compare(a.Task, b.Task), cmp.Compare(a.Name, b.Name))
	})
}
