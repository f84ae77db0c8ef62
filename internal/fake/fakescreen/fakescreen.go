// Package fakescreen is a terminal emulator for tests. It shows the output as a person would see it.
//
// It supports the output of coven: text, line feeds, carriage returns, and the sequences that move
// the cursor up, erase, and set modes. Other sequences are ignored.
package fakescreen

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Window is the window of a terminal, with its history.
type Window struct {
	// Truncates makes the terminal cut off its lines when it becomes narrower, as
	// xterm does. Other terminals wrap them again, as VTE and tmux do.
	Truncates bool

	mu            sync.Mutex
	width, height int
	lines         [][]rune // a line can span several rows
	row, col      int      // of the cursor: index of its line, and column in that line
	full          bool     // whether the cursor is after the last column of a row
	hidden        bool     // whether the cursor is hidden
	rest          []byte   // an incomplete sequence or character
}

// New returns an empty window.
func New(width, height int) *Window {
	return &Window{width: width, height: height, lines: [][]rune{nil}}
}

// filler is the second cell of a wide character.
const filler = '\u200b'

// Write shows the output of a program.
func (w *Window) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	for len(text) > 0 {
		n := w.next(text)
		if n == 0 {
			break
		}
		text = text[n:]
	}
	w.rest = bytes.Clone(text)
	return len(p), nil
}

// next interprets the first character or sequence of a text and returns its length, or 0 if
// it is not complete.
func (w *Window) next(text []byte) int {
	switch text[0] {
	case '\x1b':
		return w.sequence(text)
	case '\r':
		w.moved()
		w.col -= w.col % w.width
		return 1
	case '\n':
		w.down()
		return 1
	}
	if text[0] < ' ' {
		return 1
	}
	if !utf8.FullRune(text) {
		return 0
	}
	r, n := utf8.DecodeRune(text)
	w.put(r)
	return n
}

// sequence interprets a sequence that begins with ESC.
func (w *Window) sequence(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] == ']' || text[1] == 'P' {
		return stringEnd(text)
	}
	if text[1] != '[' {
		return 2
	}
	end := bytes.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return 0
	}
	w.control(string(text[2:2+end]), text[2+end])
	return 3 + end
}

// stringEnd returns the length of a sequence whose text ends with BEL or ESC \, or 0 if it is not complete.
func stringEnd(text []byte) int {
	for i, c := range text {
		switch {
		case c == '\a':
			return i + 1
		case c == '\\' && i > 2 && text[i-1] == '\x1b':
			return i + 1
		}
	}
	return 0
}

func (w *Window) control(args string, final byte) {
	switch final {
	case 'A':
		n := 1
		_, _ = fmt.Sscan(args, &n)
		for range n {
			w.up()
		}
	case 'J', 'K':
		w.moved()
		line := w.lines[w.row]
		w.lines[w.row] = line[:min(w.col, len(line))]
		if final == 'J' {
			w.lines = w.lines[:w.row+1]
		}
	case 'h', 'l':
		if args == "?25" {
			w.hidden = final == 'l'
		}
	}
}

// moved moves a cursor after the last column back onto it.
func (w *Window) moved() {
	if w.full {
		w.col--
	}
	w.full = false
}

func (w *Window) up() {
	w.moved()
	switch {
	case w.col >= w.width:
		w.col -= w.width
	case w.row > 0:
		w.row--
		w.col += (w.rows(w.row) - 1) * w.width
	}
}

func (w *Window) down() {
	w.moved()
	if w.col/w.width+1 < w.rows(w.row) {
		w.col += w.width
		return
	}
	w.col %= w.width
	if w.row++; w.row == len(w.lines) {
		w.lines = append(w.lines, nil)
	}
}

// rows returns the number of rows of a line.
func (w *Window) rows(line int) int { return max((len(w.lines[line])+w.width-1)/w.width, 1) }

func (w *Window) put(r rune) {
	line := w.lines[w.row]
	for len(line) <= w.col {
		line = append(line, ' ')
	}
	line[w.col] = r
	w.col++
	if ansi.StringWidth(string(r)) == 2 {
		line = append(line[:w.col], filler)
		w.col++
	}
	w.lines[w.row], w.full = line, w.col%w.width == 0
}

// Resize changes the size of the window, like a person who drags its border.
func (w *Window) Resize(width, height int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved()
	if w.Truncates {
		w.truncate(width)
	}
	w.width, w.height = width, height
}

// truncate converts each row to a line of at most width columns.
func (w *Window) truncate(width int) {
	var lines [][]rune
	row := 0
	for i := range w.lines {
		if i == w.row {
			row = len(lines) + w.col/w.width
		}
		for j := range w.rows(i) {
			cells := w.lines[i][min(j*w.width, len(w.lines[i])):min((j+1)*w.width, len(w.lines[i]))]
			lines = append(lines, slices.Clone(cells[:min(len(cells), width)]))
		}
	}
	w.lines, w.row, w.col = lines, row, min(w.col%w.width, width-1)
}

// Text returns the rows of the window, without trailing spaces.
func (w *Window) Text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rows []string
	for i, line := range w.lines {
		for j := range w.rows(i) {
			cells := line[min(j*w.width, len(line)):min((j+1)*w.width, len(line))]
			text := strings.ReplaceAll(string(cells), string(filler), "")
			rows = append(rows, strings.TrimRight(text, " "))
		}
	}
	rows = rows[max(len(rows)-w.height, 0):]
	return strings.TrimRight(strings.Join(rows, "\n"), "\n") + "\n"
}

// CursorHidden reports whether the cursor is hidden.
func (w *Window) CursorHidden() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hidden
}
