package protected

import (
	"slices"
	"strings"
)

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
	case Config:
		if fenced && c.isDailyConfig() {
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

// isDailyWork reports whether people make such a change to a ref while a task runs: they commit, amend, rebase,
// switch branches, stash, bisect, and fetch tags, and so do their tools.
func (c Change) isDailyWork() bool {
	switch {
	case isOurs(c.Name), strings.HasPrefix(c.Name, "refs/replace/"):
		return false
	case c.Name == head:
		return c.After.Exists()
	}
	return !isSymbolic(c.After)
}

// isDailyConfig reports whether people and git make such a change to the configuration while a task runs: git
// configures branches, remotes and submodules. Settings that name a program are excluded.
func (c Change) isDailyConfig() bool {
	known := func(v Value) bool { return strings.HasPrefix(v.Text, sumPrefix) && v.Stored() }
	return known(c.Before) && known(c.After) && c.After.Mode == c.Before.Mode &&
		withoutDaily(c.Before.Content) == withoutDaily(c.After.Content)
}

// withoutDaily returns the lines of a git configuration that isDailyConfig does not permit to change.
func withoutDaily(config []byte) string {
	var kept strings.Builder
	section := ""
	for line := range strings.Lines(string(config)) {
		text := strings.ToLower(strings.TrimSpace(line))
		if strings.HasPrefix(text, "[") {
			section, _, _ = strings.Cut(strings.TrimPrefix(text, "["), " ")
			if slices.Contains([]string{"branch", "remote", "submodule"}, section) && strings.HasSuffix(text, `"]`) {
				continue
			}
			section = ""
		}
		key, _, _ := strings.Cut(text, "=")
		if section == "" || strings.HasSuffix(text, `\`) || !slices.Contains(dailySettings(section), strings.TrimSpace(key)) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func dailySettings(section string) []string {
	return map[string][]string{
		"branch":    {"remote", "merge", "rebase", "pushremote", "description"},
		"remote":    {"url", "pushurl", "fetch", "prune", "tagopt"},
		"submodule": {"url", "active"},
	}[section]
}

// isOurs reports whether only coven writes the ref. People rename and delete branches of tasks, and commit on them.
func isOurs(name string) bool { return strings.HasPrefix(name, "refs/coven/") }

// isRemoteTracking reports whether fetches write the ref.
func isRemoteTracking(name string) bool {
	return strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
}
