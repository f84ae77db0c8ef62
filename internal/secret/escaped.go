package secret

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the levels of nested JSON that are searched.
const maxDepth = 4

// layer is a text with its escapes resolved. The byte at index i comes from the original
// text between at[i] and at[i+1].
type layer struct {
	text []byte
	at   []int
}

// unescaped masks secrets that appear once JSON escapes are resolved.
func (s *Store) unescaped(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	values := s.hidden()
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
			b.WriteString(text[from:span[0]] + mask)
			from = span[1]
		}
		text = b.String() + text[from:]
	}
	return text
}

// spansIn returns the spans of a text that resolve to a secret, in order.
func spansIn(text string, values []string) [][2]int {
	now := layer{text: []byte(text), at: make([]int, len(text)+1)}
	for i := range now.at {
		now.at[i] = i
	}
	for range maxDepth {
		next, changed := now.resolve()
		if !changed {
			return nil
		}
		now = next
		if found := now.find(values); len(found) > 0 {
			return found
		}
	}
	return nil
}

// find returns the spans of secrets in a layer, as positions in the original text.
func (l layer) find(values []string) [][2]int {
	var found [][2]int
	first := firstBytes(values)
	for i := 0; i < len(l.text); i++ {
		if !first[l.text[i]] {
			continue
		}
		if value, _ := match(l.text[i:], values); value != "" {
			found = append(found, [2]int{l.at[i], l.at[i+len(value)]})
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

// maxOpenLine limits the incomplete line that lineWriter holds back.
const maxOpenLine = 256 << 10

// lineWriter masks secrets in lines. It holds back text that contains an escape until
// the line ends.
type lineWriter struct {
	store *Store
	to    io.WriteCloser
	held  []byte
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
	if end == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(w.clean(w.held[:end])); err != nil {
		return 0, err
	}
	w.held = append(w.held[:0], w.held[end:]...)
	return len(p), nil
}

func (w *lineWriter) clean(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	return []byte(w.store.unescaped(string(text)))
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
