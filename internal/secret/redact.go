package secret

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// mask replaces a secret.
const mask = "***"

// cutMark ends a truncated text.
const cutMark = "…"

// hide adds a value to the hidden values, in the forms in which it may appear: unchanged,
// encoded as JSON, as JSON in JSON, for URLs, on one line, and each long line separately.
func (s *Store) hide(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	forms := []string{
		value, url.QueryEscape(value), url.PathEscape(value), inJSON(value, true), inJSON(value, false),
		inJSON(inJSON(value, true), true), inJSON(inJSON(value, false), false),
	}
	if one := strings.Join(strings.Fields(value), " "); len(one) >= MinLength {
		forms = append(forms, one)
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= MinLength {
			forms = append(forms, line, inJSON(line, true), inJSON(line, false))
		}
	}
	s.known = append(s.known, forms...)
	slices.SortFunc(s.known, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	s.known = slices.Compact(s.known)
	s.encoded = slices.Clone(s.known)
	for _, form := range s.known {
		s.encoded = append(s.encoded, inJSON(form, true), inJSON(form, false))
	}
	slices.Sort(s.encoded)
	s.encoded = slices.Compact(s.encoded)
}

// inJSON returns a text encoded as JSON, without the quotes.
func inJSON(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(text) != nil {
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

func (s *Store) hidden() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known
}

// Text masks the secrets in a text, including secrets escaped by JSON up to
// maxDepth times, and secrets broken by line ends and terminal sequences.
func (s *Store) Text(text string) string {
	for _, value := range s.hidden() {
		text = strings.ReplaceAll(text, value, mask)
	}
	text = s.unescaped(text)
	if !strings.Contains(text, cutMark) {
		return text
	}
	parts := strings.Split(text, cutMark)
	for i, part := range parts[:len(parts)-1] {
		parts[i] = s.beforeCut(part)
	}
	return strings.Join(parts, cutMark)
}

// beforeCut masks the beginning of a secret at the end of a truncated text.
func (s *Store) beforeCut(text string) string {
	for _, value := range s.hidden() {
		for n := min(len(value)-1, len(text)); n >= MinLength; n-- {
			if strings.HasSuffix(text, value[:n]) {
				return text[:len(text)-n] + mask
			}
		}
	}
	return text
}

// JSON masks the secrets in the strings of a JSON value. Member names that
// look like those of coven's own records are kept.
func (s *Store) JSON(raw []byte) []byte {
	s.mu.RLock()
	written := s.encoded
	s.mu.RUnlock()
	isIn := func(value string) bool { return bytes.Contains(raw, []byte(value)) }
	if len(written) == 0 || !isIn(cutMark) && !isIn(`\\`) && !isIn(`\n`) && !isIn(`\r`) && !isIn(`\u`) && !isIn(`\/`) && !slices.ContainsFunc(written, isIn) {
		return raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return []byte(s.Text(string(raw)))
	}
	before, err := encoded(value)
	if err != nil {
		return []byte(s.Text(string(raw)))
	}
	after, err := encoded(s.walk(value))
	switch {
	case err != nil:
		return []byte(s.Text(string(raw)))
	case bytes.Equal(before, after):
		return raw
	}
	return after
}

// encoded encodes a value as JSON.
func encoded(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// memberRE matches member names of coven's own records.
var memberRE = lazyregexp.New(`^[a-z][a-z_]{0,30}$`)

func (s *Store) walk(value any) any {
	switch value := value.(type) {
	case string:
		return s.Text(value)
	case []any:
		for i := range value {
			value[i] = s.walk(value[i])
		}
	case map[string]any:
		for key, member := range value {
			clean := key
			if !memberRE.MatchString(key) {
				clean = s.Text(key)
			}
			if clean != key {
				delete(value, key)
			}
			value[clean] = s.walk(member)
		}
	}
	return value
}

// Writer returns a writer that masks secrets, including those split across writes. It
// holds back a possible beginning of a secret until more data arrives, or until Close.
//
// It processes lines with an escape as a whole, up to maxOpenLine, because JSON may
// have escaped a secret in them.
func (s *Store) Writer(to io.WriteCloser) io.WriteCloser {
	return &writer{store: s, to: &lineWriter{store: s, to: to}}
}

type writer struct {
	store *Store
	to    io.WriteCloser
	held  []byte
}

func (w *writer) Write(p []byte) (int, error) {
	text, held := redact(append(w.held, p...), w.store.hidden())
	w.held = held
	if len(text) == 0 {
		return len(p), nil
	}
	if _, err := w.to.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// redact masks the values in a text. held is the end of the text if a value may begin
// there. values must be sorted, longest first.
func redact(text []byte, values []string) (clean, held []byte) {
	first := firstBytes(values)
	for {
		at := slices.IndexFunc(text, func(b byte) bool { return first[b] })
		if at < 0 {
			return append(clean, text...), nil
		}
		clean, text = append(clean, text[:at]...), text[at:]
		switch value, open := match(text, values); {
		case open:
			return clean, slices.Clone(text)
		case value != "":
			clean, text = append(clean, mask...), text[len(value):]
		default:
			clean, text = append(clean, text[0]), text[1:]
		}
	}
}

// match returns the longest value at the start of a text. open reports whether the
// text may be the beginning of a longer value.
func match(text []byte, values []string) (value string, open bool) {
	for _, v := range values {
		if bytes.HasPrefix(text, []byte(v)) {
			return v, false
		}
		if len(text) < len(v) && strings.HasPrefix(v, string(text)) {
			return "", true
		}
	}
	return "", false
}

// firstBytes returns the set of first bytes of values.
func firstBytes(values []string) (first [256]bool) {
	for _, v := range values {
		first[v[0]] = true
	}
	return first
}

// Close writes the held-back bytes and closes the underlying writer.
func (w *writer) Close() error {
	var err error
	if len(w.held) > 0 {
		_, err = w.to.Write([]byte(w.store.Text(string(w.held))))
		w.held = nil
	}
	return errors.Join(err, w.to.Close())
}
