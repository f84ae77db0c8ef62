package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// The picture in pixels. A row of text is drawn with a fixed width, so that it fits with
// any font.
const (
	cellWidth  = 8.4
	rowHeight  = 19
	margin     = 16
	titleBar   = 28
	fontFamily = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
)

// svg returns the picture of a terminal window with rows of text.
func svg(rows []string) string {
	width := pictureColumns*cellWidth + 2*margin
	height := titleBar + len(rows)*rowHeight + margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d" role="img" aria-label="coven runs a task">`+"\n", width, height, width, height)
	b.WriteString("<!-- Drawn by make picture. -->\n")
	fmt.Fprintf(&b, "<style>text { font: 14px %s; fill: #d0d7de; white-space: pre; } .command { fill: #ffffff; font-weight: bold; } .good { fill: #56d364; } .bad { fill: #ff7b72; } .quiet { fill: #8b949e; }</style>\n", fontFamily)
	fmt.Fprintf(&b, `<rect width="%.0f" height="%d" rx="8" fill="#0d1117"/>`+"\n", width, height)
	for i, color := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="16" r="5" fill="%s"/>`+"\n", margin+6+i*18, color)
	}
	for i, row := range rows {
		if strings.TrimSpace(row) == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve"%s>%s</text>`+"\n", margin, titleBar+(i+1)*rowHeight-4, class(row), escaped(row))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// class returns the attribute with the color of a row, or "".
func class(row string) string {
	text := strings.TrimSpace(row)
	for _, c := range []struct{ name, prefix string }{
		{"command", "$ coven"}, {"quiet", "│"}, {"good", "✓"}, {"bad", "✗"}, {"bad", "failed with"}, {"bad", "error:"}, {"command", question},
	} {
		if strings.HasPrefix(text, c.prefix) {
			return ` class="` + c.name + `"`
		}
	}
	return ""
}

// escaped returns a text as XML.
func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}
