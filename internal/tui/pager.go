package tui

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/terminal"
)

// A Feed returns the next lines of a text: those that are new since the last call. The error is io.EOF if no more will follow.
type Feed func() ([]string, error)

// A pager shows a text that may be long. It wraps and colors only the lines that are on the screen.
type pager struct {
	title  string
	line   string // the command line that prints the same
	task   string // whose keys work; empty if none do
	lines  []string
	style  func(line string) string
	top    int  // index of the first line on the screen
	files  bool // it is a diff
	follow bool // stays at the end while lines are added
	search string
	said   string

	feed Feed // nil if the text is complete
	read turn
	err  error
}

// maxLine limits the cells of a line. The rest of it, such as of a minified file, is cut.
const maxLine = 1000

// clean returns lines without control characters, and with tabs as spaces.
func clean(lines []string) []string {
	cleaned := make([]string, len(lines))
	for i, line := range lines {
		line = strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", "    ")
		if len(line) > maxLine {
			line = ansi.Truncate(line, maxLine, "…")
		}
		cleaned[i] = terminal.Printable(line)
	}
	return cleaned
}

// next reads the next lines of the feed.
func (p *pager) next() textMsg {
	lines, err := p.feed()
	return textMsg{of: p, lines: clean(lines), err: err}
}

// add adds the lines that were read.
func (p *pager) add(msg textMsg) {
	p.lines = append(p.lines, msg.lines...)
	if msg.err != nil {
		p.feed = nil
	}
	if msg.err != nil && !errors.Is(msg.err, io.EOF) {
		p.err = msg.err
	}
}

// wrapped returns the rows of a line.
func wrapped(line string, width int) []string {
	if ansi.StringWidth(line) <= width {
		return []string{line}
	}
	return strings.Split(ansi.Hardwrap(line, max(width, 1), true), "\n")
}

// last returns the top at which the end of the text is on the screen.
func (p *pager) last(width, height int) int {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if height -= len(wrapped(p.lines[i], width)); height < 0 {
			return min(i+1, len(p.lines)-1)
		}
	}
	return 0
}

// key scrolls. It reports whether the key is one of the pager.
func (p *pager) key(key string, width, height int) bool {
	end := p.last(width, height)
	if p.follow {
		p.top = end
	}
	p.said = ""
	switch key {
	case "j", "down", "enter":
		p.top++
	case "k", "up":
		p.top--
	case "pgdown", "ctrl+d", "ctrl+f", "space":
		p.top += max(height-1, 1)
	case "pgup", "ctrl+u", "ctrl+b", "b":
		p.top -= max(height-1, 1)
	case "g", "home":
		p.top = 0
	case "G", "end":
		p.top = end
	case "n":
		p.file(1)
	case "p":
		p.file(-1)
	default:
		return false
	}
	p.top = max(min(p.top, end), 0)
	p.follow = p.feed != nil && p.top == end && key != "n"
	return true
}

// file goes to the next or the previous file of a diff.
func (p *pager) file(by int) {
	for i := p.top + by; i >= 0 && i < len(p.lines); i += by {
		if isFile(p.lines[i]) {
			p.top = i
			return
		}
	}
	p.said = "no more files"
}

func isFile(line string) bool { return strings.HasPrefix(line, "diff --git ") }

// find goes to the next line that contains a text, from the beginning after the last one. Case does not matter.
func (p *pager) find(text string, width, height int) {
	p.search, p.follow, p.said = text, false, ""
	text = strings.ToLower(text)
	for i := range p.lines {
		if at := (p.top + 1 + i) % len(p.lines); text != "" && strings.Contains(strings.ToLower(p.lines[at]), text) {
			p.top = min(at, p.last(width, height))
			if p.top < at {
				p.said = fmt.Sprintf("found in line %d", at+1)
			}
			return
		}
	}
	p.said = "not found: " + printable(text)
}

// rows returns the rows of the screen.
func (p *pager) rows(width, height int) []string {
	if p.follow {
		p.top = p.last(width, height)
	}
	var rows []string
	switch {
	case p.err != nil:
		rows = append(rows, styled(red, printable(p.err.Error())))
	case len(p.lines) == 0 && p.feed != nil:
		rows = append(rows, styled(dim, "reading …"))
	case len(p.lines) == 0:
		rows = append(rows, styled(dim, "nothing"))
	}
	for i := p.top; i < len(p.lines) && len(rows) < height; i++ {
		for _, row := range wrapped(p.lines[i], width) {
			rows = append(rows, p.styled(p.lines[i], row))
		}
	}
	return rows[:min(len(rows), height)]
}

// styled colors a row of a line, and marks the matches of the search.
func (p *pager) styled(line, row string) string {
	code := ""
	if p.style != nil {
		code = p.style(line)
	}
	if at := strings.Index(strings.ToLower(row), strings.ToLower(p.search)); p.search != "" && at >= 0 && at+len(p.search) <= len(row) {
		found := styled(invert, row[at:at+len(p.search)])
		return paint(code, row[:at]) + found + paint(code, row[at+len(p.search):])
	}
	return paint(code, row)
}

// paint adds the SGR code of a color, unless it is empty.
func paint(code, text string) string { return terminal.Color(text, code) }

// position describes the part of the text that is on the screen.
func (p *pager) position(height int) string {
	if len(p.lines) <= height {
		return ""
	}
	text := fmt.Sprintf("line %d of %d", p.top+1, len(p.lines))
	if file, count := p.fileAt(); count > 0 {
		text = fmt.Sprintf("file %d of %d, ", file, count) + text
	}
	if p.follow {
		text += ", following"
	}
	return text
}

// fileAt returns the number of the first file on the screen, and of all.
func (p *pager) fileAt() (at, count int) {
	if !slices.ContainsFunc(p.lines[:1], isFile) {
		return 0, 0
	}
	for i, line := range p.lines {
		if isFile(line) {
			if count++; i <= p.top {
				at = count
			}
		}
	}
	return at, count
}

// A turn lets one read run at a time. A request while it runs begins another one after it.
type turn struct{ busy, again bool }

// begin reports whether to begin a read now.
func (t *turn) begin() bool {
	if t.busy {
		t.again = true
		return false
	}
	t.busy = true
	return true
}

// end ends a read, and reports whether to begin another one.
func (t *turn) end() bool {
	again := t.again
	t.busy, t.again = false, false
	return again
}

// storyColor returns the color of a line of a story.
func storyColor(line string) string {
	switch text := strings.TrimSpace(line); {
	case strings.HasPrefix(text, "✗"), strings.Contains(text, ": failed"):
		return terminal.Red
	case strings.HasPrefix(text, "✓"), strings.HasPrefix(text, "landed "):
		return terminal.Green
	case strings.HasPrefix(text, "warning:"), strings.HasPrefix(text, "?"):
		return terminal.Yellow
	case strings.HasPrefix(text, "→"), strings.HasPrefix(text, "$"):
		return terminal.Cyan
	}
	return ""
}
