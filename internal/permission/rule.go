package permission

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/coven-run/coven/internal/text/glob"
)

// Action is the effect of a rule.
type Action string

// Actions, the strictest first.
const (
	Deny  Action = "deny"
	Ask   Action = "ask" // a person decides
	Allow Action = "allow"
)

// Actions returns all actions.
func Actions() []Action { return []Action{Allow, Deny, Ask} }

// stricter reports whether a allows less than b.
func (a Action) stricter(b Action) bool {
	order := []Action{Deny, Ask, Allow}
	return slices.Index(order, a) < slices.Index(order, b)
}

// Everything is the pattern that matches every subject.
const Everything = "/**"

// A Rule applies an action to the requests that need a permission and match a pattern.
//
// The pattern of a file permission is a glob from the top of the worktree ("/src/**"). Without a
// leading slash it matches at any depth ("*.pem"). The pattern of bash.execute is the text of
// one simple command, where * matches any text ("git push *"). The patterns of other permissions match
// their subject: a host, the name of an agent, or SERVER/TOOL.
type Rule struct {
	Permission Name   `json:"permission" yaml:"permission"`
	Pattern    string `json:"pattern"    yaml:"pattern"`
	Action     Action `json:"action"     yaml:"action"`
}

func (r Rule) String() string {
	return fmt.Sprintf("%s %s %s", r.Action, r.Permission, r.Pattern)
}

// MatchesAll reports whether the pattern matches every subject.
func (r Rule) MatchesAll() bool {
	return slices.Contains([]string{"", "*", "**", Everything}, r.Pattern)
}

// CheckPattern returns an error if a pattern is not a valid glob or cannot match anything.
func CheckPattern(name Name, pattern string) error {
	err := glob.Check(pattern)
	if len(pattern) <= glob.MaxLength && name == BashExecute || err == nil && isFile(name) && strings.HasPrefix(pattern, "/") {
		return nil
	}
	switch {
	case errors.Is(err, doublestar.ErrBadPattern):
		return fmt.Errorf("invalid pattern %q", pattern)
	case err != nil:
		return fmt.Errorf("invalid pattern: %w", err)
	}
	if isFile(name) && slices.Contains(strings.Split(pattern, "/"), "..") {
		return fmt.Errorf("invalid pattern %q: it leaves the worktree", pattern)
	}
	return nil
}

func isFile(name Name) bool { return name == FileRead || name == FileWrite || name == CodeSearch }

// matches reports whether the rule matches a request, except for a shell command. Rules that
// do not allow ignore case, because on some file systems different spellings are the same
// file.
func (r Rule) matches(root string, req Request) bool {
	switch {
	case r.Permission != req.Permission:
		return false
	case r.MatchesAll():
		return true
	}
	pattern, subject := r.Pattern, req.Subject
	if isFile(req.Permission) {
		inside, ok := within(root, req.Path)
		if !ok {
			return false
		}
		if subject = "/"; inside != "." {
			subject += filepath.ToSlash(inside)
		}
		if !strings.HasPrefix(pattern, "/") {
			pattern = "/**/" + pattern
		}
	}
	if r.Action != Allow {
		pattern, subject = strings.ToLower(pattern), strings.ToLower(subject)
	}
	matched, err := doublestar.Match(pattern, subject)
	return err == nil && matched
}

// hole replaces text that is unknown until the shell runs a command.
const hole = '\x00'

// matchesCommand reports whether the rule matches one statement, whose text may have holes:
// surely, and possibly. A rule that does not allow ignores the directory of a program: /bin/rm is rm.
func (r Rule) matchesCommand(text string) (surely, possibly bool) {
	if r.Permission != BashExecute {
		return false, false
	}
	if r.MatchesAll() {
		return true, true
	}
	if command, rest, _ := strings.Cut(text, " "); strings.HasPrefix(command, "/") && r.Action != Allow {
		surely, possibly = r.matchesCommand(strings.TrimSuffix(path.Base(command)+" "+rest, " "))
	}
	patterns := []string{r.Pattern}
	if short, ok := strings.CutSuffix(r.Pattern, " *"); ok {
		patterns = append(patterns, short) // without arguments
	}
	for _, p := range patterns {
		surely = surely || globText(p, text, false)
		possibly = possibly || globText(p, text, true)
	}
	return surely, possibly
}

// globText matches a text with a pattern in which * matches any text. A hole in the text matches
// only *, or, if anything is set, any part of the pattern.
func globText(pattern, text string, anything bool) bool {
	t := []rune(text)
	reach := make([]bool, len(t)+1) // prefixes of t that the pattern so far matches
	reach[0] = true
	for j := range t {
		reach[j+1] = reach[j] && anything && t[j] == hole
	}
	for _, c := range pattern {
		next := make([]bool, len(t)+1)
		next[0] = reach[0] && c == '*'
		for j := 1; j <= len(t); j++ {
			open := anything && t[j-1] == hole // the hole may be empty or continue
			switch {
			case c == '*':
				next[j] = reach[j] || next[j-1]
			case open:
				next[j] = next[j-1] || reach[j-1] || reach[j]
			default:
				next[j] = reach[j-1] && t[j-1] == c
			}
		}
		if c == '*' {
			next[0] = reach[0]
		}
		reach = next
	}
	return reach[len(t)]
}
