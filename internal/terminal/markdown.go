package terminal

import (
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// The parts of Markdown that Markdown formats.
var (
	heading = lazyregexp.New(`^#{1,6} +(.*?)[ #]*$`)
	bullet  = lazyregexp.New(`^( *)[-*+] `)
	strong  = lazyregexp.New(`\*\*([^*]+)\*\*|__([^_]+)__`)
	fence   = lazyregexp.New("^ *(```+|~~~+)")
)

// Control sequences of styles.
const (
	bold, noBold  = "\x1b[1m", "\x1b[22m"
	cyan, noColor = "\x1b[36m", "\x1b[39m"
)

// Markdown formats Markdown for a terminal with colors: headings and strong text are bold, code is colored, and code blocks are
// indented. Everything else stays as it is. The text must be printable: see PrintableLines.
func Markdown(text string) string {
	lines := strings.Split(text, "\n")
	shown := make([]string, 0, len(lines))
	end := "" // of the code block
	for _, line := range lines {
		mark := strings.TrimSpace(fence.FindString(line))
		switch {
		case end != "" && mark != "" && strings.HasPrefix(mark, end) && strings.TrimSpace(line) == mark:
			end = ""
		case end != "":
			shown = append(shown, "    "+cyan+line+noColor)
		case mark != "":
			end = mark
		default:
			shown = append(shown, markdownLine(line))
		}
	}
	return strings.Join(shown, "\n")
}

// markdownLine formats a line outside of code blocks.
func markdownLine(line string) string {
	if title := heading.FindStringSubmatch(line); title != nil {
		return bold + title[1] + noBold
	}
	line = bullet.ReplaceAllString(line, "${1}• ")
	parts := strings.Split(line, "`")
	if len(parts)%2 == 0 { // a backquote without its other
		return line
	}
	for i, part := range parts {
		if i%2 == 1 {
			parts[i] = cyan + part + noColor
		} else {
			parts[i] = strong.ReplaceAllString(part, bold+"${1}${2}"+noBold)
		}
	}
	return strings.Join(parts, "")
}
