package secret

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// maxDepth limits the levels of nested JSON that are searched.
const maxDepth = 4

// layer is a text with its escapes resolved. The byte at index i comes from the original
// text between at[i] and end(i).
type layer struct {
	text []byte
	at   []int // has one more element than text
	to   []int // the ends, if breaks were removed between the bytes
}

func layerOf(text string) layer {
	l := layer{text: []byte(text), at: make([]int, len(text)+1)}
	for i := range l.at {
		l.at[i] = i
	}
	return l
}

func (l layer) end(i int) int {
	if l.to != nil {
		return l.to[i]
	}
	return l.at[i+1]
}

// unescaped masks secrets that appear once JSON escapes are resolved, or breaks are removed. It keeps
// the number of lines.
func (s *Store) unescaped(text string) string {
	values := s.hidden()
	if strings.IndexByte(text, '\\') < 0 && !mayBeBroken([]byte(text), values) {
		return text
	}
	for range maxDepth { // masking one layer may leave secrets in a deeper one
		found := spansIn(text, values)
		if len(found) == 0 {
			return text
		}
		var b strings.Builder
		from := 0
		for _, span := range found {
			if span[0] < from {
				continue
			}
			b.WriteString(text[from:span[0]] + mask + strings.Repeat("\n", strings.Count(text[span[0]:span[1]], "\n")))
			from = span[1]
		}
		text = b.String() + text[from:]
	}
	return text
}

// spansIn returns the spans of a text that resolve to a secret, in order.
func spansIn(text string, values []string) [][2]int {
	now := layerOf(text)
	found := now.findBroken(values)
	for range maxDepth {
		next, changed := now.resolve()
		if !changed || len(found) > 0 {
			return found
		}
		now = next
		if found = now.find(values); len(found) == 0 {
			found = now.findBroken(values)
		}
	}
	return found
}

// find returns the spans of secrets in a layer, as positions in the original text.
func (l layer) find(values []string) [][2]int {
	var found [][2]int
	first := firstBytes(values)
	for i := 0; i < len(l.text); i++ {
		if !first[l.text[i]] {
			continue
		}
		if value, _ := match(l.text[i:], values); value != "" && l.breaksIn(i, i+len(value)) <= maxBreaks(value) {
			found = append(found, [2]int{l.at[i], l.end(i + len(value) - 1)})
			i += len(value) - 1
		}
	}
	return found
}

// resolve resolves one level of escapes.
func (l layer) resolve() (next layer, changed bool) {
	next = layer{text: make([]byte, 0, len(l.text)), at: make([]int, 0, len(l.at))}
	for i := 0; i < len(l.text); {
		r, n := escape(l.text[i:])
		if n == 0 {
			next.text, next.at = append(next.text, l.text[i]), append(next.at, l.at[i])
			i++
			continue
		}
		changed = true
		for range len(string(r)) {
			next.at = append(next.at, l.at[i])
		}
		next.text = utf8.AppendRune(next.text, r)
		i += n
	}
	next.at = append(next.at, l.at[len(l.text)])
	return next, changed
}

// escape decodes the JSON escape at the start of a text. n is the length of the escape, or 0
// if there is none.
func escape(text []byte) (r rune, n int) {
	if len(text) < 2 || text[0] != '\\' {
		return 0, 0
	}
	if at := strings.IndexByte(`"\/bfnrt`, text[1]); at >= 0 {
		return rune("\"\\/\b\f\n\r\t"[at]), 2
	}
	r, ok := unit(text)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if low, ok := unit(text[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

// unit decodes \uXXXX.
func unit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	return rune(n), err == nil
}

// breaks are the bytes that begin a break: line ends and terminal sequences.
const breaks = "\r\n\x1b"

// breakRE matches the line ends, and the sequences for colors, links and titles, that programs and terminals put
// into long or colored texts.
var breakRE = lazyregexp.New(`^(?:[\r\n]|\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|$)|\][^\x07\x1b]*(?:\x07|\x1b\\|\x1b?$)|[ -/]*(?:[0-Z^-~]|$)))+`)

// mayBeBroken reports whether the beginning of a value is before a break. It is much cheaper than findBroken.
func mayBeBroken(text []byte, values []string) bool {
	if len(values) == 0 {
		return false
	}
	first, longest := firstBytes(values), len(values[0])
	for i := 0; i < len(text); i++ {
		next := bytes.IndexAny(text[i:], breaks)
		if next < 0 {
			return false
		}
		i += next
		for p := max(0, i-longest); p < i; p++ {
			if !first[text[p]] {
				continue
			}
			if _, open := match(text[p:i], values); open {
				return true
			}
		}
	}
	return false
}

// findBroken returns the spans of secrets that breaks divide.
func (l layer) findBroken(values []string) [][2]int {
	if !mayBeBroken(l.text, values) {
		return nil
	}
	return l.joined().find(values)
}

// joined returns the layer without its breaks.
func (l layer) joined() (next layer) {
	for i := 0; i < len(l.text); {
		if strings.IndexByte(breaks, l.text[i]) >= 0 {
			if found := breakRE.FindSubmatch(l.text[i:]); found != nil {
				i += len(found[0])
				continue
			}
		}
		next.text, next.at, next.to = append(next.text, l.text[i]), append(next.at, l.at[i]), append(next.to, l.at[i+1])
		i++
	}
	next.at = append(next.at, l.at[len(l.text)])
	return next
}

// breaksIn returns how often the text between two indexes was broken.
func (l layer) breaksIn(begin, end int) (n int) {
	for i := begin + 1; i < end; i++ {
		if l.at[i] > l.end(i-1) {
			n++
		}
	}
	return n
}

// maxBreaks limits the breaks in a secret. More of them are a coincidence, as in a list of numbers.
func maxBreaks(value string) int { return 2 + len(value)/8 }

// maxOpenLine limits the incomplete line that lineWriter holds back.
const maxOpenLine = 256 << 10

// lineWriter masks secrets in lines. It holds back text that contains an escape until
// the line ends, and a line that may end with the beginning of a broken secret.
type lineWriter struct {
	store  *Store
	to     io.WriteCloser
	held   []byte
	column int // bytes of the open line that were passed on
}

// columnAfter returns the number of bytes of the last line of a text that begins in a column.
func columnAfter(column int, text []byte) int {
	if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
		return len(text) - i - 1
	}
	return column + len(text)
}

// Write implements io.Writer.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	end := bytes.LastIndexByte(w.held, '\n') + 1
	switch open := w.held[end:]; {
	case bytes.IndexByte(open, '\\') < 0:
		end = len(w.held)
	case len(open) > maxOpenLine:
		w.held = w.clean(w.held)
		end = max(len(w.held)-w.tail(), 0)
	}
	if end = w.beforeBroken(end); end == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(w.clean(w.held[:end])); err != nil {
		return 0, err
	}
	w.column = columnAfter(w.column, w.held[:end])
	w.held = append(w.held[:0], w.held[end:]...)
	return len(p), nil
}

func (w *lineWriter) clean(text []byte) []byte {
	return []byte(w.store.unescaped(string(text)))
}

// Lines that may be wrapped.
const (
	minBeginning = 3  // bytes of a secret at the end of a short line
	minWrapped   = 40 // bytes of a line that a terminal may have wrapped after any byte of a secret
)

// beforeBroken returns the end of the text that cannot contain the beginning of a secret that continues after
// a break at end. A short line is not held back for one or two letters: a person may be waiting for it.
func (w *lineWriter) beforeBroken(end int) int {
	values := w.store.hidden()
	if len(values) == 0 {
		return end
	}
	begin := max(0, end-4*len(values[0])-minWrapped) // the first one is the longest
	tail := layerOf(string(w.held[begin:end])).joined()
	first := firstBytes(values)
	for i := max(0, len(tail.text)-len(values[0])); i < len(tail.text); i++ {
		if !first[tail.text[i]] {
			continue
		}
		from := begin + tail.at[i]
		wrapped := columnAfter(w.column, w.held[:from]) + len(tail.text) - i
		if _, open := match(tail.text[i:], values); open && (len(tail.text)-i >= minBeginning || wrapped >= minWrapped) {
			return from
		}
	}
	return end
}

// tail returns the number of bytes at the end of a clean line that may begin a
// secret: the length of the longest secret with all characters escaped.
func (w *lineWriter) tail() int {
	longest := 0
	for _, value := range w.store.hidden() {
		longest = max(longest, len(value))
	}
	return longest*6*maxDepth + 64
}

// Close writes the held-back bytes and closes the underlying writer.
func (w *lineWriter) Close() error {
	var err error
	if len(w.held) > 0 {
		_, err = w.to.Write([]byte(w.store.unescaped(string(w.held))))
		w.held = nil
	}
	return errors.Join(err, w.to.Close())
}
