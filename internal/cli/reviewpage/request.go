package reviewpage

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/terminal"
)

// margin is the indentation of the lines of a section.
const margin = "  "

// Fit wraps the request of a page for a terminal of this width. A width of 0 means no terminal, where lines
// are not wrapped.
func Fit(p control.Page, width int) control.Page {
	if width == 0 {
		return p
	}
	r := &p.Request
	for _, text := range []*string{&r.Description, &r.Acceptance, &r.Design, &r.Notes} {
		*text = wrap(*text, max(width-len(margin), minWrap))
	}
	return p
}

// requestText returns the sections of the request: the task, and the changes that people asked for. The
// title is in the first line of the page.
func requestText(p control.Page) string {
	var b strings.Builder
	for _, part := range []struct{ heading, text string }{
		{"Request", p.Request.Description},
		{"Acceptance criteria", p.Request.Acceptance},
		{"Design", p.Request.Design},
		{"Notes", p.Request.Notes},
	} {
		if strings.TrimSpace(part.text) != "" {
			b.WriteString("\n" + part.heading + ":\n" + section(part.text))
		}
	}
	var changes strings.Builder
	for _, revision := range p.View.Revisions {
		for _, f := range revision.Changes {
			text := f.Message
			if f.File != "" {
				text = f.Where() + " " + text
			}
			changes.WriteString(revision.By + ": " + strings.TrimSpace(text) + "\n")
		}
	}
	if changes.Len() > 0 {
		b.WriteString("\nRequested changes:\n" + section(changes.String()))
	}
	return b.String()
}

// section indents the lines of a text with the margin.
func section(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\r\n")) {
		line = strings.TrimRight(terminal.Printable(strings.TrimRight(line, "\r\n")), " ")
		if line != "" {
			line = margin + line
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// minWrap is the minimum width to which text is wrapped.
const minWrap = 20

// wrap breaks the lines of a text between words, so that they have at most width columns. A continuation
// line has the indentation of its line, or begins below the text of its list item. Lines of a fenced code
// block are not wrapped.
func wrap(text string, width int) string {
	var lines []string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if fence := strings.HasPrefix(strings.TrimSpace(line), "```"); fence || fenced {
			fenced = fenced != fence
			lines = append(lines, line)
			continue
		}
		lines = append(lines, wrapLine(line, width)...)
	}
	return strings.Join(lines, "\n")
}

func wrapLine(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	indent := strings.Repeat(" ", min(hang(line), width/2))
	var lines []string
	now := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	empty := true // now has no word yet
	for _, word := range strings.Fields(line) {
		if !empty && ansi.StringWidth(now)+1+ansi.StringWidth(word) > width {
			lines, now, empty = append(lines, now), indent, true
		}
		if !empty {
			now += " "
		}
		now, empty = now+word, false
	}
	return append(lines, now)
}

// hang returns the column at which the text of a line begins: after its indentation, and
// after the mark of a list item.
func hang(line string) int {
	text := strings.TrimLeft(line, " \t")
	column := len(line) - len(text)
	for _, mark := range []string{"- [ ] ", "- [x] ", "- ", "* ", "+ "} {
		if strings.HasPrefix(text, mark) {
			return column + len(mark)
		}
	}
	return column
}
