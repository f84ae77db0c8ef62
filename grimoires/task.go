package grimoires

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Task contains the data of the session's task that templates can use.
type Task struct {
	ID          string   `yaml:"id"`
	Title       string   `yaml:"title"`
	Description string   `yaml:"description,omitempty"`
	Acceptance  string   `yaml:"acceptance,omitempty"` // Markdown; if empty, a section of Description is used
	Design      string   `yaml:"design,omitempty"`
	Notes       string   `yaml:"notes,omitempty"`
	Type        string   `yaml:"type,omitempty"`
	Priority    int      `yaml:"priority"` // 0 is the most urgent
	Labels      []string `yaml:"labels,omitempty"`
	Parent      string   `yaml:"parent,omitempty"`
	ExternalRef string   `yaml:"external_ref,omitempty"`
}

// TaskData returns the value of .task (and .bead) in templates: id, title, description, body (the same),
// acceptance (Markdown), acceptance_criteria (its items), design, notes, type, priority ("P2"), labels,
// parent and external_ref.
func TaskData(t Task) map[string]any {
	acceptance := strings.TrimSpace(lf(t.Acceptance))
	if acceptance == "" {
		acceptance = section(lf(t.Description))
	}
	labels := t.Labels
	if labels == nil {
		labels = []string{}
	}
	return map[string]any{
		"id": t.ID, "title": t.Title, "description": t.Description, "body": t.Description,
		"acceptance": acceptance, "acceptance_criteria": Criteria(acceptance),
		"design": t.Design, "notes": t.Notes, "type": t.Type, "priority": fmt.Sprintf("P%d", t.Priority),
		"labels": labels, "parent": t.Parent, "external_ref": t.ExternalRef,
	}
}

func taskKeys() []string {
	return []string{
		"id", "title", "description", "body", "acceptance", "acceptance_criteria", "design", "notes",
		"type", "priority", "labels", "parent", "external_ref",
	}
}

func lf(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

var (
	heading    = lazyregexp.New(`^ {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$`)
	acceptance = lazyregexp.New(`(?i)^acceptance criteria:?$`)
	fence      = lazyregexp.New("^ {0,3}(```+|~~~+)")
	item       = lazyregexp.New(`^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?(.*))?$`)
)

// section returns the text below the heading "Acceptance Criteria".
func section(text string) string {
	var out []string
	depth := 0 // of the section's heading; 0 outside the section
	eachLine(text, func(line string, code bool) {
		if m := heading.FindStringSubmatch(line); m != nil && !code {
			switch {
			case depth == 0 && len(out) == 0 && acceptance.MatchString(strings.Trim(m[2], "*_ ")):
				depth = len(m[1])
				return
			case depth > 0 && len(m[1]) <= depth:
				depth = 0
			}
		}
		if depth > 0 {
			out = append(out, line)
		}
	})
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// Criteria returns the items of a Markdown text verbatim and in order: its list items, with the text
// indented below them, and its paragraphs. It omits markers, check boxes and headings.
func Criteria(markdown string) []string {
	items := []string{}
	open, blank, inCode := false, false, false // whether an item can continue, and the state of the previous line
	eachLine(lf(markdown), func(line string, code bool) {
		m := item.FindStringSubmatch(line)
		last, within := len(items)-1, code && inCode
		inCode = code
		switch {
		case strings.TrimSpace(line) == "" && !code:
			blank = true
			return
		case m != nil && !code:
			items, open = append(items, m[1]), true
		case heading.MatchString(line) && !code:
			open = false
		case open && (!blank || within || strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")):
			if blank {
				items[last] += "\n"
			}
			items[last] += "\n" + line
		default:
			items, open = append(items, line), true
		}
		blank = false
	})
	return tidy(items)
}

// tidy removes empty items, and the common indentation of all lines of an item except the first.
func tidy(items []string) []string {
	kept := []string{}
	for _, text := range items {
		lines := strings.Split(text, "\n")
		cut := indentation(lines[1:])
		for i := range lines[1:] {
			lines[i+1] = lines[i+1][min(cut, len(lines[i+1])):]
		}
		if text = strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}

func indentation(lines []string) int {
	least := -1
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if n := len(line) - len(strings.TrimLeft(line, " \t")); least < 0 || n < least {
			least = n
		}
	}
	return max(least, 0)
}

// eachLine calls do for each line. code reports whether the line belongs to a fenced code block.
func eachLine(text string, do func(line string, code bool)) {
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		mark := ""
		if m := fence.FindStringSubmatch(strings.TrimLeft(line, " \t")); m != nil {
			mark = m[1]
		}
		switch {
		case open == "" && mark != "":
			open = mark
			do(line, true)
		case open != "" && strings.HasPrefix(mark, open):
			open = ""
			do(line, true)
		default:
			do(line, open != "")
		}
	}
}
