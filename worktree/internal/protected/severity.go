package protected

import "strings"

// A Severity is the consequence of a change for the step during which it happened.
type Severity string

// The severities, weakest first.
const (
	// Noted means that the change is only recorded.
	Noted Severity = "noted"
	// Holds means that a person decides before the task lands.
	Holds Severity = "holds"
	// Stops means that the step fails.
	Stops Severity = "stops"
)

const (
	headsPrefix    = "refs/heads/"
	tagsPrefix     = "refs/tags/"
	symbolicPrefix = "ref: "
	head           = "HEAD"
)

// Severity returns the severity of the change. fenced means that the kernel prevented the programs of the
// step from writing to the repository, so that changes which are part of a person's daily work were made by
// a person. Without a fence, only moves of remote-tracking refs are harmless, and changes of files in
// checkouts may be a person's work.
func (c Change) Severity(fenced bool) Severity {
	switch c.Kind {
	case Checkout, Index, Sibling:
		return Holds
	case Ref:
		if isRemoteTracking(c.Name) || fenced && c.isDailyWork() {
			return Noted
		}
	}
	return Stops
}

// Worst returns the highest severity of the changes, or "" if there are none.
func Worst(changes []Change, fenced bool) Severity {
	worst := Severity("")
	for _, c := range changes {
		s := c.Severity(fenced)
		if s == Stops || worst == "" || worst == Noted {
			worst = s
		}
	}
	return worst
}

// isDailyWork reports whether people make such a change to a ref while a task runs: they commit, switch
// branches, stash, bisect, and fetch tags.
func (c Change) isDailyWork() bool {
	created := !c.Before.Exists() && !isSymbolic(c.After)
	switch {
	case isOurs(c.Name):
		return false
	case c.Name == head:
		return c.After.Exists()
	case isOfCheckout(c.Name):
		return true
	case strings.HasPrefix(c.Name, tagsPrefix):
		return created
	case strings.HasPrefix(c.Name, headsPrefix), strings.HasPrefix(c.Name, "refs/notes/"):
		return created || c.Forward
	}
	return false
}

// isOurs reports whether only coven writes the ref.
func isOurs(name string) bool {
	return strings.HasPrefix(name, "refs/coven/") || strings.HasPrefix(name, headsPrefix+"coven/")
}

// isRemoteTracking reports whether fetches write the ref.
func isRemoteTracking(name string) bool {
	return strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
}

// isOfCheckout reports whether the ref belongs to the work in a single checkout.
func isOfCheckout(name string) bool {
	for _, prefix := range []string{"refs/bisect/", "refs/worktree/", "refs/rewritten/"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "refs/stash"
}
