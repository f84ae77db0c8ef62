package cli

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/terminal"
)

// column is a column of a table. Its first cell is the heading.
type column struct {
	cells []string
	color func(row int) string // SGR code of a cell; may be nil
}

// shrink narrows a column of a table that is too wide, down to least.
type shrink struct {
	*column
	least int
}

const (
	gap       = "  " // between two columns
	minColumn = 8    // a column that would be narrower is omitted
)

// tableLines returns the lines of a table that is at most width columns wide. A width of 0 means no limit.
// Columns with only a heading are omitted. If the table is too wide, the columns in givingWay shrink in
// order, and the rest is cut off.
func tableLines(width int, columns []*column, givingWay ...shrink) []string {
	var shown []*column
	for _, c := range columns {
		if strings.Join(c.cells[1:], "") != "" {
			shown = append(shown, c)
		}
	}
	widths := fit(width, shown, givingWay)
	for _, s := range givingWay {
		if at := slices.Index(shown, s.column); at >= 0 && widths[s.column] < min(minColumn, s.width()) {
			shown = slices.Delete(shown, at, at+1)
			widths = fit(width, shown, givingWay)
		}
	}
	lines := make([]string, len(columns[0].cells))
	for row := range lines {
		lines[row] = tableLine(width, shown, widths, row)
	}
	return lines
}

// fit returns the widths of columns.
func fit(width int, columns []*column, givingWay []shrink) map[*column]int {
	widths, excess := map[*column]int{}, -width-len(gap)
	for _, c := range columns {
		widths[c] = c.width()
		excess += widths[c] + len(gap)
	}
	if width == 0 {
		return widths
	}
	for _, s := range givingWay {
		if less := min(excess, widths[s.column]-s.least); less > 0 {
			widths[s.column] -= less
			excess -= less
		}
	}
	return widths
}

// width returns the width of the longest cell.
func (c *column) width() int {
	longest := 0
	for _, cell := range c.cells {
		longest = max(longest, ansi.StringWidth(terminal.Printable(cell)))
	}
	return longest
}

func tableLine(width int, columns []*column, widths map[*column]int, row int) string {
	var b strings.Builder
	used := 0
	for _, c := range columns {
		room := widths[c]
		if width > 0 {
			room = min(room, width-used)
		}
		if room <= 0 {
			break // the terminal ends here
		}
		text := ansi.Truncate(terminal.Printable(c.cells[row]), room, "…")
		pad := room - ansi.StringWidth(text)
		if c.color != nil && text != "" {
			text = terminal.Color(text, c.color(row))
		}
		b.WriteString(text + strings.Repeat(" ", pad) + gap)
		used += room + len(gap)
	}
	return strings.TrimRight(b.String(), " ")
}

// Wrap wraps text that begins at a column so that its lines fit the terminal and begin there, too. It keeps words whole, so that
// paths and options can be copied.
func (a *App) Wrap(text string, column int) string {
	const narrow = 20
	width := a.width() - column
	if width < narrow {
		return text
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Split(text, " ") {
		size := ansi.StringWidth(word)
		switch {
		case i == 0:
		case used+1+size > width:
			b.WriteString("\n" + strings.Repeat(" ", column))
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += size
	}
	return b.String()
}
