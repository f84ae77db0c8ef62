package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/didyoumean"
)

// Problem is an error or a warning about a file.
type Problem struct {
	Path       string `json:"path"`
	Line       int    `json:"line"` // starts at 1; 0 for the whole file
	Agent      string `json:"agent"`
	Field      string `json:"field"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	Warning    bool   `json:"warning"` // the definition is usable
}

// String returns "path:line: error: message".
func (p Problem) String() string {
	kind := "error"
	if p.Warning {
		kind = "warning"
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.Path, max(p.Line, 1), kind, p.Message)
}

// Error implements error.
func (p Problem) Error() string { return p.String() }

// problems collects the problems of one file.
type problems struct {
	path  string
	agent string // the agent's name, or else the base name of the file
	all   []Problem
}

func (ps *problems) add(line int, field, suggestion, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if suggestion != "" {
		message += fmt.Sprintf(" (did you mean '%s'?)", suggestion)
	}
	ps.all = append(ps.all, Problem{Path: ps.path, Line: line, Agent: ps.agent, Field: field, Message: message, Suggestion: suggestion})
}

func (ps *problems) warn(line int, field, format string, args ...any) {
	ps.add(line, field, "", format, args...)
	ps.all[len(ps.all)-1].Warning = true
}

// unknown reports an unknown value.
func (ps *problems) unknown(line int, field, value string, known []string) {
	near, _ := didyoumean.Nearest(value, known)
	ps.add(line, field, near, "Agent '%s' has invalid %s '%s'", ps.agent, singular(field), value)
}

// singular returns the term for one item of a list.
func singular(field string) string {
	switch field {
	case "permissions", "requires_approval":
		return "permission"
	}
	return field
}

// sorted returns the problems in file order.
func (ps *problems) sorted() []Problem {
	slices.SortStableFunc(ps.all, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return ps.all
}

// usable reports whether a definition with these problems can be used.
func usable(all []Problem) bool {
	return !slices.ContainsFunc(all, func(p Problem) bool { return !p.Warning })
}

// firstReason returns the first error, or "".
func firstReason(all []Problem) string {
	for _, p := range all {
		if !p.Warning {
			return p.String()
		}
	}
	return ""
}

func clipped(text string) string {
	const most = 80
	if runes := []rune(strings.Join(strings.Fields(text), " ")); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return strings.Join(strings.Fields(text), " ")
}
